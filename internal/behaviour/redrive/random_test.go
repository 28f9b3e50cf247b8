package redrive_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/persist"
)

// chance is an API that decides by chance what becomes of a key, and then keeps to it. An event may say later that it has charged what it refused.
type chance struct {
	r    *rand.Rand
	paid map[string]bool // by key: decided; true: it took effect
	log  []string
}

// RoundTrip implements http.RoundTripper.
func (a *chance) RoundTrip(req *http.Request) (*http.Response, error) {
	key := req.Header.Get("Idempotency-Key")
	_, decided := a.paid[key]
	how := a.r.IntN(6)
	if !decided && how == 0 {
		return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	}
	_, _ = io.Copy(io.Discard, req.Body)
	if !decided && how > 1 {
		a.paid[key] = how < 4
	}
	a.log = append(a.log, fmt.Sprintf("    the API gets %s; decided and paid: %v", key, a.paid))
	if !decided && how < 3 {
		return nil, lostReply.Err
	}
	status, body := paid.Status, paid.Body
	if !a.paid[key] {
		status, body = cardError.Status, cardError.Body
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
		Request: req, ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// life is one intent: a program that makes its tries, persons and events that are honest, and time.
type life struct {
	*family
	api *chance
	try int // of the program
}

// TestFamilyAtRandom: whatever a program that counts its tries, persons, events of the API, sweeps and erasures do, in whatever order, one try at most takes effect. No call
// with the key of a try is told of no effect where that one took effect, or one in its place. (Invariants 1, 2, 54, 56 and 57.)
func TestFamilyAtRandom(t *testing.T) {
	t.Parallel()
	for seed := range uint64(400) {
		synctest.Test(t, func(t *testing.T) {
			api := &chance{r: rand.New(rand.NewPCG(seed, 7)), paid: map[string]bool{}}
			l := &life{newFamily(t, []func(*oncehttp.Config){func(cfg *oncehttp.Config) {
				if cfg.Transport = api; seed%3 == 0 {
					cfg.KeepText, cfg.KeepAnswer = 31*24*time.Hour, -1
				}
			}}), api, 1}
			for range 60 {
				l.step()
				effects := 0
				for _, took := range api.paid {
					if took {
						effects++
					}
				}
				if effects > 1 || t.Failed() {
					t.Fatalf("seed %d: %d effects\n%s", seed, effects, strings.Join(api.log, "\n"))
				}
			}
		})
	}
}

// step is one act of anybody.
func (l *life) step() {
	keys := []oncehttp.Key{"k", "k:gen=2", "k:gen=3", "k:gen=4", "x", "x:gen=2"}
	key := keys[l.api.r.IntN(len(keys))]
	said := func(what string, err error) { l.api.log = append(l.api.log, fmt.Sprintf("%s %s: %v", what, key, err)) }
	switch n := l.api.r.IntN(14); n {
	case 0, 1, 2, 3:
		l.makesTry(n == 3)
	case 4:
		l.try = 1 // the program is run anew
	case 5, 6, 7:
		said("Resume before", nil)
		clienttest.Resume(l.t, l.Client)
	case 8:
		_, err := l.Redrive(l.t.Context(), key)
		said("Redrive", err)
	case 9:
		_, err := l.Unsettle(l.t.Context(), key, "why")
		said("Unsettle", err)
	case 10:
		l.settles(key, said)
	case 11:
		l.proves(key, said)
	case 12:
		time.Sleep([]time.Duration{time.Minute, time.Hour, 40 * 24 * time.Hour, 400 * 24 * time.Hour}[l.api.r.IntN(4)])
		_, err := l.Sweep(l.t.Context())
		said("Sweep before", err)
	case 13:
		said("Erase", l.Erase(l.t.Context(), key))
	}
}

// makesTry makes the program's present try. It goes on with the next one only after a refusal, or an error whose effect is absent or refused.
func (l *life) makesTry(enqueues bool) {
	key := oncehttp.Key("k").Generation(l.try)
	status, err := 0, error(nil)
	if enqueues {
		err = l.Enqueue(charge(l.t), key)
	} else if resp, failed := l.DoKey(charge(l.t), key); failed != nil {
		err = failed
	} else {
		status = resp.StatusCode
		_ = resp.Body.Close()
	}
	l.api.log = append(l.api.log, fmt.Sprintf("the program tries %s: %d, %v", key, status, err))
	var e *oncehttp.Error
	if status != cardError.Status && !(errors.As(err, &e) && slices.Contains([]persist.Effect{persist.EffectAbsent, persist.EffectRefused}, e.Effect())) {
		return
	}
	for at := string(key); at != ""; {
		rec := l.record(at)
		if l.api.paid[at] {
			l.t.Errorf("told that %s had no effect, and %s took effect", key, at)
		}
		if at = rec.ReplacedBy; rec.Erased {
			at = ""
		}
	}
	l.try = min(l.try+1, 4)
}

// settles is the act of a person who has looked at the API: absent is only what took no effect, and then never will.
func (l *life) settles(key oncehttp.Key, said func(string, error)) {
	rec, err := l.Lookup(l.t.Context(), key)
	switch {
	case err != nil:
	case rec.State == persist.StateSettled && rec.Effect == persist.EffectAbsent:
		said("Rekey to x", l.Rekey(l.t.Context(), key, "x", "once more", oncehttp.AsSeen(rec)))
	case !rec.State.Final() && !l.api.paid[string(key)]:
		err = l.Settle(l.t.Context(), key, oncehttp.Resolution{Effect: oncehttp.EffectAbsent}, oncehttp.AsSeen(rec))
		if said("Settle as absent", err); err == nil {
			l.api.paid[string(key)] = false
		}
	}
}

// proves delivers an event, of an operation with an effect; or of a refused one, if no other has an effect.
func (l *life) proves(key oncehttp.Key, said func(string, error)) {
	rec, none := l.record(string(key)), true
	for _, took := range l.api.paid {
		none = none && !took
	}
	if refused := none && rec.State == persist.StateConfirmed && !rec.Erased; l.api.paid[string(key)] || refused {
		said("an event proves", nil)
		charged(l.t, l.Client, string(key))
		l.api.paid[string(key)] = true
	}
}
