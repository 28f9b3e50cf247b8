package conformance_test

import (
	"hash/crc32"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/conformance"
	"github.com/oncehttp/oncehttp/mockserver"
)

// volumeOptions are for a run with volume of a sample at that URL.
func volumeOptions(url string, c choices) conformance.Options {
	o := sampleOptions(url)
	o.Profile, o.Volume, o.MaxEffects = c.declare(), true, 1_200
	return o
}

// volumeBug is a fault that shows by number alone, and the case that finds it.
type volumeBug struct {
	name, found string
	q           quirk
}

// volumeBugs lists them all. Each collides so often that a run misses it less than once in a million: 120 keys beside
// one at work on 8 locks, some 500 keys on 4,096 hashes.
func volumeBugs() []volumeBug {
	short := func(bits int) func(string) string {
		return func(text string) string {
			return strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(text))>>(32-bits)), 10)
		}
	}
	hashed := short(12)
	return []volumeBug{
		{"keys by 12 bits of a hash", "volume/keys", quirk{scope: func(_ *call, parts []string) []string { return []string{parts[0], hashed(parts[1])} }}},
		{"records by 12 bits of a hash, and not compared", "volume/keys", quirk{
			scope: func(_ *call, parts []string) []string { return []string{parts[0], hashed(parts[1])} }, covers: func(_ *call, _ []string) []string { return nil },
		}},
		{"bodies by their sum", "volume/bodies", quirk{covers: func(_ *call, parts []string) []string {
			sum := 0
			for _, b := range []byte(parts[3]) {
				sum += int(b)
			}
			return append(parts[:3:3], strconv.Itoa(sum))
		}}},
		{"bodies by 6 bits of a hash", "volume/bodies", quirk{covers: func(_ *call, parts []string) []string { return append(parts[:3:3], short(6)(parts[3])) }}},
		{"300 records are kept", "volume/keys", quirk{front: evicting(func(_ *call, e, newest *entry, younger, _ int) bool { return younger > 300 })}},
		{"1 MB of requests are kept", "volume/bytes", quirk{front: evicting(func(_ *call, _, _ *entry, _, bytes int) bool { return bytes > 1<<20 })}},
		{"records are kept for 20 seconds", "volume/age", quirk{front: evicting(func(_ *call, e, _ *entry, _, _ int) bool { return time.Since(e.born) > 20*time.Second })}},
		{"a table of 8 locks", "volume/locks", quirk{front: lockTable(8)}},
		{"one buffer for all answers", "volume/connections", quirk{run: sharedAnswer}},
	}
}

// evicting lets each record go of which the function says so, given how many are younger and how many bytes they hold.
func evicting(goes func(c *call, e, newest *entry, younger, bytes int) bool) func(*call) bool {
	return func(c *call) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		var ids []string
		for id, e := range c.entries {
			if e.reply != nil {
				ids = append(ids, id)
			}
		}
		slices.SortFunc(ids, func(a, b string) int { return c.entries[b].born.Compare(c.entries[a].born) })
		bytes := 0
		for younger, id := range ids {
			e := c.entries[id]
			if bytes += len(e.print); goes(c, e, c.entries[ids[0]], younger, bytes) {
				delete(c.entries, id)
			}
		}
		return false
	}
}

// lockTable refuses a key while another one of the same lock is at work.
func lockTable(size uint32) func(*call) bool {
	return func(c *call) bool {
		lock := func(key string) uint32 { return crc32.ChecksumIEEE([]byte(key)) % size }
		mine := c.r.Header.Get("Idempotency-Key")
		c.mu.Lock()
		busy := false
		for id, e := range c.entries {
			_, key, _ := strings.Cut(id, "\x00")
			busy = busy || e.reply == nil && key != mine && lock(key) == lock(mine)
		}
		c.mu.Unlock()
		if busy {
			c.send(c.refusal(http.StatusConflict, "busy", "another request is being handled"))
		}
		return busy
	}
}

// sharedAnswer answers with what was written last, by whatever request.
func sharedAnswer(c *call) reply {
	a := c.serve()
	c.mu.Lock()
	c.notes["answer"] = a
	c.mu.Unlock()
	time.Sleep(time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.notes["answer"].(reply)
}

// stickyCaller takes all requests of a connection for the first one's caller.
func stickyCaller() func(*call) bool {
	return func(c *call) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		name := "caller of " + c.r.RemoteAddr
		if first, known := c.notes[name].(string); known {
			c.r.Header.Set("Authorization", first)
		}
		c.notes[name] = c.r.Header.Get("Authorization")
		return false
	}
}

// Each fault of number is found by its case, and by no other.
func TestVolumeFinds(t *testing.T) {
	t.Parallel()
	virtually(t, some(volumeBugs()), func(t *testing.T, _ int, bug volumeBug) {
		_, url := newSample(t, choices{updates: true}, bug.q)
		rep := run(t, volumeOptions(url, choices{updates: true}))
		if got := faults(rep); !slices.Contains(got, bug.found) {
			t.Errorf("%s: got findings %v, want %s\n%s", bug.name, got, bug.found, text(rep))
		}
		t.Logf("%-60s %v in %d requests", bug.name, faults(rep), rep.Requests)
	})
}

// What is kept of a connection is found where connections are told apart, over TCP.
func TestVolumeFindsConnections(t *testing.T) {
	t.Parallel()
	beside([]quirk{{}, {front: stickyCaller()}}, func(i int, q quirk) {
		_, url := newSample(t, choices{updates: true}, q)
		o := volumeOptions(url, choices{updates: true})
		o.Run = []string{"volume/connections"}
		if got := faults(run(t, o)); len(got) != i {
			t.Errorf("%d faults: got findings %v", i, got)
		}
	})
}

// Right servers are cleared, within what was said before.
func TestVolumeClears(t *testing.T) {
	t.Parallel()
	few := []choices{{}, {wait: true, keeps: true, updates: true}, {quoted: true, status: 204, required: true}, {perBurst: 40}}
	virtually(t, few, func(t *testing.T, _ int, c choices) {
		_, url := newSample(t, c, quirk{})
		o := volumeOptions(url, c)
		o.MaxEffects = 600
		rep := run(t, o)
		plan := conformance.PlanVolume(o)
		if len(wrong(rep)) > 0 || rep.Cut || c.perBurst == 0 && rep.Requests > plan.Requests || plan.Effects > o.MaxEffects {
			t.Errorf("%+v: got %v, cut %v, %d requests; said were %d, and %d effects\n%s", c, wrong(rep), rep.Cut, rep.Requests, plan.Requests, plan.Effects, text(rep))
		}
		t.Logf("%d requests of %d", rep.Requests, plan.Requests)
	})
	virtual(t, func(t *testing.T) {
		o := options(start(t, mockserver.Config{Profile: releasing()}), releasing())
		o.Volume, o.MaxEffects = true, 600
		if rep := run(t, o); len(wrong(rep)) > 0 || rep.Summary.Pass < 5 {
			t.Errorf("the mock: got %v\n%s", wrong(rep), text(rep))
		}
	})
}
