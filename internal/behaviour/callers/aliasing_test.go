package callers_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// Nothing of one call may show in another. These tests look for anything that still
// refers to a call that is over: every request carries its
// identity in every header line, in its path and in its body, every answer gives it
// back, and everybody who may hold on to a request (the transport, its trace hooks,
// Authorize, the caller, the caller's response) does so, looks at it later, and then
// writes all over it.

// ware is the identity of an operation, which stands in all of its parts.
type ware struct {
	id  string
	key oncehttp.Key // empty: a generated one
}

func (w ware) body() string {
	return fmt.Sprintf(`{"id":%q,"pad":%q}`, w.id, strings.Repeat(w.id, len(w.id)%5*40))
}

// request of the ware. Its headers differ in number from ware to ware, so that one
// that is left over shows.
func (w ware) request(t *testing.T, ctx context.Context) *http.Request {
	req, err := http.NewRequestWithContext(ctx, "POST", "https://api.example.com/pay/"+w.id+"?ref="+w.id, strings.NewReader(w.body()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Op", w.id)
	req.Header["X-Trail"] = []string{w.id + "-1", w.id + "-2"}
	sum := sha256.Sum256([]byte(w.id))
	for i := range int(sum[0]) % 22 {
		req.Header[fmt.Sprintf("X-Extra-%d-%s", i, w.id)] = []string{w.id}
	}
	if sum[1]%2 == 0 {
		req.Header.Set("Authorization", "Bearer "+w.id)
	}
	if sum[2]%3 == 0 {
		req.Header.Set("X-Api-Key", w.id)
	}
	if sum[3]%4 == 0 {
		req.Host = w.id + ".example.com"
	}
	return req
}

// ours reports what in h does not belong to id.
func ours(h http.Header, id string) error {
	if got := h.Get("X-Op"); got != id {
		return fmt.Errorf("the headers of %q, want those of %q", got, id)
	}
	for name, lines := range h {
		if strings.EqualFold(name, "Idempotency-Key") { // generated ones say nothing
			continue
		}
		if strings.HasPrefix(name, "X-Extra-") && !strings.HasSuffix(name, "-"+id) {
			return fmt.Errorf("%s among the headers of %q", name, id)
		}
		if len(lines) == 0 || name == "X-Trail" && len(lines) != 2 {
			return fmt.Errorf("%s of %q has the lines %q", name, id, lines)
		}
		for _, line := range lines {
			if !slices.Contains([]string{id, id + "-1", id + "-2", id + ".example.com", "Bearer " + id}, line) {
				return fmt.Errorf("%s: %s among the headers of %q", name, line, id)
			}
		}
	}
	return nil
}

// TestNothingSharedUnderStress: each caller gets the answer to its own request and to no
// other, each key takes effect once, and nothing that was kept of a request changes
// with the next.
func TestNothingSharedUnderStress(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*stress, *oncehttp.Config){
		"plain":      nil,
		"authorized": func(s *stress, cfg *oncehttp.Config) { cfg.Authorize = s.sign },
	} {
		for _, faults := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/faults=%v", name, faults), func(t *testing.T) {
				t.Parallel()
				const callers, calls = 12, 250
				s := newStress(t, newAuditor(t), faults, change)
				s.run(callers, calls)
			})
		}
	}
	t.Run("bolt", func(t *testing.T) {
		t.Parallel()
		j, err := bolt.Open(filepath.Join(testrun.Dir(t), "j.db"), bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { j.Close() })
		newStress(t, auditing(t, j), true, nil).run(8, 60)
	})
}

// TestNothingSharedAcrossClose: clients on one journal, in turn, each closed under way.
func TestNothingSharedAcrossClose(t *testing.T) {
	t.Parallel()
	j := newAuditor(t)
	s := newStress(t, j, true, nil)
	for round := range 40 {
		if round > 0 {
			s.c, _ = clienttest.New(t, s.v, clienttest.On(j, s.small))
		}
		var work sync.WaitGroup
		for caller := range 6 {
			work.Go(func() {
				for i := range 30 {
					w := ware{id: fmt.Sprintf("own-%d-%d-%d", round, caller, i)}
					if i%3 == 0 {
						w.id = fmt.Sprintf("shared-%d-%d", round, i)
						w.key = oncehttp.Key("k-" + w.id)
					}
					s.call(w)()
				}
			})
		}
		time.Sleep(time.Duration(rand.IntN(6000)) * time.Microsecond)
		if err := s.c.Close(); err != nil {
			t.Error(err)
		}
		work.Wait()
	}
	s.c, _ = clienttest.New(t, s.v, clienttest.On(j, s.small))
	s.finish()
}

// TestNothingSharedAfterPanics: functions of the Config that panic, or end the goroutine,
// hurt the callers of their own operation and nobody else.
func TestNothingSharedAfterPanics(t *testing.T) {
	t.Parallel()
	var calm atomic.Bool
	s := newStress(t, newAuditor(t), false, func(s *stress, cfg *oncehttp.Config) {
		cfg.Authorize = func(req *http.Request) error {
			switch dice := rand.IntN(12); {
			case calm.Load():
			case dice == 0:
				panic(req.Header.Get("X-Op"))
			case dice == 1:
				runtime.Goexit()
			}
			return s.sign(req)
		}
	})
	var work sync.WaitGroup
	for caller := range 8 {
		work.Go(func() {
			for i := range 120 {
				w := ware{id: fmt.Sprintf("own-%d-%d", caller, i)}
				if i%2 == 0 {
					w.id = fmt.Sprintf("shared-%d", i)
					w.key = oncehttp.Key("k-" + w.id)
				}
				var one sync.WaitGroup
				one.Add(1)
				go func() { // of its own, as it may end
					defer one.Done()
					returned := false
					defer func() {
						if p := recover(); p != nil && p != any(w.id) {
							t.Errorf("%q: the panic of %v", w.id, p)
						}
						if !returned {
							s.doubtful(w)
						}
					}()
					s.call(w)()
					returned = true
				}()
				one.Wait()
			}
		})
	}
	work.Wait()
	calm.Store(true) // and on the same client, which has leases on what was left lying
	s.finish()
}
