package referee_test

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/mockserver/internal/mocktest"
)

// habits are how a client behaves. correct() has good ones; each broken client
// changes one.
type habits struct {
	key        func(operation string, attempt int, last reply) string
	body       func(operation string, attempt int) string
	wait       func(random *rand.Rand, attempt int, last reply) time.Duration
	stop       func(attempt int, last reply) bool
	header     func(key string) http.Header
	hedge      time.Duration // a second send after so long; 0: none
	leavesOpen bool          // the slower one of two is not cancelled
	timeout    time.Duration
	attempts   int
}

func correct() habits {
	return habits{
		key: func(operation string, _ int, _ reply) string {
			sum := sha256.Sum256([]byte("secret" + operation))
			return fmt.Sprintf("%x-%x", sum[:4], sum[4:16])
		},
		body: func(operation string, _ int) string { return `{"reference":"` + operation + `"}` },
		wait: func(random *rand.Rand, attempt int, last reply) time.Duration {
			if seconds, err := strconv.Atoi(last.Header.Get("Retry-After")); err == nil {
				return time.Duration(seconds) * time.Second
			}
			return time.Duration(random.Int64N(int64(100*time.Millisecond) << attempt))
		},
		stop:     func(_ int, last reply) bool { return last.Err == nil && final(last.Status) },
		header:   func(key string) http.Header { return http.Header{"Idempotency-Key": {key}} },
		timeout:  10 * time.Second,
		attempts: 10,
	}
}

func final(status int) bool {
	return status < 300 || status >= 400 && status < 500 && status != 409 && status != 429
}

// drive sends one operation.
func (h habits) drive(cl *client, operation string, random *rand.Rand) {
	var last reply
	var late sync.WaitGroup
	defer late.Wait()
	for attempt := range h.attempts {
		if attempt > 0 {
			time.Sleep(h.wait(random, attempt, last))
		}
		key := h.key(operation, attempt, last)
		ctx, cancel := mocktest.In(h.timeout)
		r := request{Body: h.body(operation, attempt), Header: h.header(key), Ctx: ctx}
		first, second := make(chan reply, 1), make(chan reply, 1)
		late.Go(func() { first <- cl.Do(r); cancel() })
		if h.hedge > 0 {
			time.Sleep(h.hedge)
			if len(first) == 0 {
				hedged := r
				hedged.Ctx = nil
				late.Go(func() { second <- cl.Do(hedged) })
			}
		}
		last = h.either(first, second)
		if !h.leavesOpen {
			cancel()
		}
		if h.stop(attempt, last) {
			return
		}
	}
}

// either is the first answer that settles the matter, else that of the first
// send.
func (h habits) either(first, second chan reply) reply {
	select {
	case got := <-first:
		return got
	case got := <-second:
		if h.stop(0, got) {
			return got
		}
		return <-first
	}
}

// brokenClient is a change of habits, and the rules that it breaks.
type brokenClient struct {
	change func(*habits)
	breaks []string
}

func brokenClients() map[string]brokenClient {
	all := map[string]brokenClient{}
	for _, some := range []map[string]brokenClient{clientsWithBadKeys(), clientsThatRepeatBadly(), clientsThatStopWrongly()} {
		for name, c := range some {
			all[name] = c
		}
	}
	return all
}

// rekeyed takes a new key where when says so.
func rekeyed(when func(attempt int, last reply) bool) func(*habits) {
	return func(h *habits) {
		base, generation := h.key, map[string]int{}
		h.key = func(operation string, attempt int, last reply) string {
			if attempt > 0 && when(attempt, last) {
				generation[operation]++
			}
			return base(fmt.Sprint(operation, generation[operation]), attempt, last)
		}
	}
}

func clientsWithBadKeys() map[string]brokenClient {
	const one, conflict, failed, lost, twice = "key/one-per-operation", "key/kept-after-conflict", "key/kept-after-error", "key/kept-after-lost-answer", "operation/one-effect"
	return map[string]brokenClient{
		"a key per attempt":        {rekeyed(func(int, reply) bool { return true }), []string{one, conflict, failed, lost, twice}},
		"a new key after a 409":    {rekeyed(func(_ int, last reply) bool { return last.Status == 409 }), []string{one, conflict}},
		"a new key after a 5xx":    {rekeyed(func(_ int, last reply) bool { return last.Err == nil && last.Status >= 500 }), []string{one, failed, twice}},
		"a new key after a 429":    {rekeyed(func(_ int, last reply) bool { return last.Status == 429 }), []string{one, failed}},
		"a new key after silence":  {rekeyed(func(_ int, last reply) bool { return last.Err != nil }), []string{one, lost, twice}},
		"one key for everything":   {func(h *habits) { h.key = func(string, int, reply) string { return "0123456789abcdef-0123" } }, []string{"key/unique"}},
		"keys that count":          {func(h *habits) { h.key = counting() }, []string{"key/entropy"}},
		"keys from a clock":        {func(h *habits) { h.key = clocked() }, []string{"key/entropy"}},
		"keys with blanks":         {func(h *habits) { h.header = keyed(func(k string) []string { return []string{"my key " + k} }) }, []string{"key/valid"}},
		"keys in two header lines": {func(h *habits) { h.header = keyed(func(k string) []string { return []string{k, k} }) }, []string{"key/valid"}},
		"keys that are too long":   {func(h *habits) { h.header = keyed(func(k string) []string { return []string{strings.Repeat(k, 20)} }) }, []string{"key/valid"}},
		"no key": {func(h *habits) { h.header = func(string) http.Header { return http.Header{} } },
			[]string{"key/present", twice}},
		"a key on repeats only": {func(h *habits) {
			base := h.key
			h.key = func(operation string, attempt int, last reply) string {
				if attempt == 0 {
					return ""
				}
				return base(operation, attempt, last)
			}
			h.header = func(key string) http.Header {
				if key == "" {
					return http.Header{}
				}
				return http.Header{"Idempotency-Key": {key}}
			}
		}, []string{"key/present", twice}},
	}
}

func keyed(spell func(string) []string) func(string) http.Header {
	return func(key string) http.Header { return http.Header{"Idempotency-Key": spell(key)} }
}

// counting gives keys 1, 2, 3, …; the operations are named otherwise.
func counting() func(string, int, reply) string {
	seen := map[string]int{}
	return func(operation string, _ int, _ reply) string {
		if seen[operation] == 0 {
			seen[operation] = len(seen) + 1
		}
		return fmt.Sprintf("payment-%d", seen[operation])
	}
}

func clocked() func(string, int, reply) string {
	seen := map[string]string{}
	return func(operation string, _ int, _ reply) string {
		if seen[operation] == "" {
			seen[operation] = strconv.FormatInt(time.Now().UnixNano()+int64(len(seen)), 10)
		}
		return seen[operation]
	}
}

func clientsThatRepeatBadly() map[string]brokenClient {
	jitterless := func(next func(attempt int) time.Duration) func(*habits) {
		return func(h *habits) {
			obeying := h.wait
			h.wait = func(random *rand.Rand, attempt int, last reply) time.Duration {
				if last.Header.Get("Retry-After") != "" {
					return obeying(random, attempt, last)
				}
				return next(attempt)
			}
		}
	}
	return map[string]brokenClient{
		"a timestamp in the body": {func(h *habits) {
			h.body = func(operation string, attempt int) string {
				return fmt.Sprintf(`{"reference":%q,"sent":%d}`, operation, attempt)
			}
		}, []string{"request/same-bytes"}},
		"no ear for Retry-After": {func(h *habits) {
			h.wait = func(random *rand.Rand, attempt int, _ reply) time.Duration {
				return time.Duration(random.Int64N(int64(20*time.Millisecond) << attempt))
			}
		}, []string{"wait/retry-after"}},
		"waits that never grow": {jitterless(func(int) time.Duration { return 200 * time.Millisecond }), []string{"wait/grows", "wait/jittered"}},
		"waits without jitter":  {jitterless(func(attempt int) time.Duration { return 50 * time.Millisecond << attempt }), []string{"wait/jittered"}},
		"waits without jitter, on a busy machine": {func(h *habits) {
			sends := 0
			jitterless(func(attempt int) time.Duration {
				if sends++; sends%8 == 0 {
					return 70*time.Millisecond<<attempt + time.Millisecond // the machine was late
				}
				return 70 * time.Millisecond << attempt * 3 / 4
			})(h)
		}, []string{"wait/jittered"}},
		"no end of attempts": {func(h *habits) { h.attempts = 40 }, []string{"attempts/bounded"}},
		"hedging":            {func(h *habits) { h.hedge = time.Second }, []string{"attempts/no-overlap"}},
		"a timeout that does not cancel": {func(h *habits) { h.hedge, h.leavesOpen = 2*time.Second, true },
			[]string{"attempts/no-overlap"}},
	}
}

func clientsThatStopWrongly() map[string]brokenClient {
	stopping := func(more func(attempt int, last reply) bool) func(*habits) {
		return func(h *habits) {
			base := h.stop
			h.stop = func(attempt int, last reply) bool { return base(attempt, last) || more(attempt, last) }
		}
	}
	going := func(on func(attempt int, last reply) bool) func(*habits) {
		return func(h *habits) {
			base := h.stop
			h.stop = func(attempt int, last reply) bool { return base(attempt, last) && !on(attempt, last) }
		}
	}
	return map[string]brokenClient{
		"asks after 201": {going(func(attempt int, last reply) bool { return attempt == 0 && last.Status == 201 }),
			[]string{"answer/final-not-retried"}},
		"repeats a refusal": {going(func(attempt int, last reply) bool { return attempt < 3 && last.Status == 402 }),
			[]string{"answer/final-not-retried"}},
		"repeats a mismatch": {going(func(attempt int, last reply) bool { return attempt < 3 && last.Status == 422 }),
			[]string{"answer/mismatch-not-retried"}},
		"wants no replay": {going(func(attempt int, last reply) bool { return attempt < 5 && last.Replayed() }),
			[]string{"answer/replay-accepted"}},
		"gives up after silence": {stopping(func(_ int, last reply) bool { return last.Err != nil && last.Status == 0 }),
			[]string{"answer/lost-asked-again"}},
		"gives up on a 409": {stopping(func(_ int, last reply) bool { return last.Status == 409 }),
			[]string{"answer/in-progress-asked-again"}},
		"gives up on a 429": {stopping(func(_ int, last reply) bool { return last.Status == 429 }),
			[]string{"answer/unavailable-asked-again"}},
	}
}
