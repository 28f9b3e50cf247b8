package callers_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/persist"
)

// stress is callers of all kinds around one client.
type stress struct {
	t       *testing.T
	v       *retaining
	c       *oncehttp.Client
	j       persist.Journal
	keepers sync.WaitGroup // of clones that Authorize was given

	mu    sync.Mutex
	doubt map[ware]bool // under the key that goes on
	won   int
}

func newStress(t *testing.T, j persist.Journal, faults bool, change func(*stress, *oncehttp.Config)) *stress {
	s := &stress{t: t, v: newRetaining(t, faults), doubt: map[ware]bool{}}
	t.Cleanup(s.keepers.Wait)
	s.c, s.j = clienttest.New(t, s.v, func(cfg *oncehttp.Config) {
		cfg.Journal = j
		s.small(cfg)
		if change != nil {
			change(s, cfg)
		}
	})
	return s
}

// small waits and answers.
func (s *stress) small(cfg *oncehttp.Config) {
	cfg.MaxResponseBytes = 1000
	cfg.Retry = oncehttp.Policy{MaxAttempts: 4, MinDelay: 100 * time.Microsecond, MaxDelay: time.Millisecond, AttemptTimeout: 5 * time.Second}
}

// sign is an Authorize that keeps its clone, and reads it again when it is over.
func (s *stress) sign(req *http.Request) error {
	id := req.Header.Get("X-Op")
	if err := ours(req.Header, id); err != nil {
		s.t.Errorf("to be signed: %v", err)
	}
	req.Header.Set("Authorization", "Bearer "+id)
	if rand.IntN(4) > 0 {
		return nil
	}
	get, body := req.GetBody, req.Body
	s.keepers.Go(func() {
		time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
		again, err := get()
		if err != nil {
			s.t.Error(err)
			return
		}
		for _, r := range []io.Reader{again, body} {
			got, _ := io.ReadAll(r)
			s.v.lookBody(got, id)
		}
	})
	return nil
}

// kinds of contexts. Those that can end do so at any time, or never.
func (s *stress) context() (ctx context.Context, end func()) {
	type tag struct{}
	ctx = context.WithValue(context.Background(), tag{}, 1)
	wait := time.Duration(rand.IntN(1500)) * time.Microsecond
	switch rand.IntN(8) {
	case 0, 1, 2:
		return context.Background(), func() {}
	case 3:
		return ctx, func() {}
	case 4, 5:
		ctx, cancel := context.WithCancel(ctx)
		return ctx, cancel
	case 6:
		return context.WithTimeout(ctx, wait)
	}
	ctx, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(wait, cancel)
	return ctx, func() { timer.Stop(); cancel() }
}

// send sends w in one of the ways that there are.
func (s *stress) send(w ware, req *http.Request) (*http.Response, error) {
	if w.key != "" {
		switch rand.IntN(4) {
		case 0:
			return s.c.DoKey(req, w.key)
		case 1:
			return s.c.Do(req.WithContext(oncehttp.ContextWithKey(req.Context(), w.key)))
		}
		req.Header.Set("Idempotency-Key", string(w.key))
	}
	switch rand.IntN(4) {
	case 0:
		return s.c.Transport().RoundTrip(req)
	case 1:
		resp, err := s.c.StandardClient().Do(req)
		return resp, errors.Unwrap(err) // of *url.Error
	}
	return s.c.Do(req)
}

// call sends w, looks at what came, and spoils the request, which is the caller's
// own again. It gives back what to look at later.
func (s *stress) call(w ware) (later func()) {
	ctx, end := s.context()
	defer end()
	req := w.request(s.t, ctx)
	resp, err := s.send(w, req)
	req.Header.Del("Idempotency-Key") // as send may have set
	if err := ours(req.Header, w.id); err != nil {
		s.t.Errorf("the caller's request: %v", err)
	}
	if err != nil {
		s.failed(w, err)
		req.Header.Set("X-Op", "spoiled by its caller")
		return func() {}
	}
	return s.answered(w, req, resp)
}

func (s *stress) failed(w ware, err error) {
	clienttest.ExactlyOne(s.t, err)
	var e *oncehttp.Error
	if !errors.As(err, &e) {
		return
	}
	if w.key != "" && e.Key != w.key {
		s.t.Errorf("%q: an error of %q: %v", w.key, e.Key, err)
	}
	if e.Answer != nil && e.Answer.Header.Get("X-Id") != w.id {
		s.t.Errorf("%q: an error with the answer to %q", w.id, e.Answer.Header.Get("X-Id"))
	}
	if errors.Is(err, oncehttp.ErrNoEffect) {
		if n := s.v.count(w.id); n > 0 && w.key == "" {
			s.t.Errorf("%q: %v, but it took effect", w.id, err)
		}
		return
	}
	s.doubtful(ware{w.id, e.Key})
}

// doubtful notes what finish has to ask for.
func (s *stress) doubtful(w ware) {
	if w.key == "" || strings.HasPrefix(w.id, "doomed") { // may have been abandoned
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubt[w] = true
}

func (s *stress) answered(w ware, req *http.Request, resp *http.Response) (later func()) {
	result := oncehttp.ResultOf(resp)
	if w.key != "" && result.Key != w.key {
		s.t.Errorf("%q: the result of %q", w.key, result.Key)
	}
	if rand.IntN(2) == 0 {
		s.readAnswer(w, resp)
	}
	if resp.StatusCode != http.StatusCreated { // as a caller of plain HTTP sees it
		s.doubtful(ware{w.id, result.Key})
	} else {
		s.mu.Lock()
		s.won++
		s.mu.Unlock()
		if n := s.v.count(w.id); n != 1 {
			s.t.Errorf("%q was answered, and took effect %d times", w.id, n)
		}
	}
	return func() {
		if now := oncehttp.ResultOf(resp); !reflect.DeepEqual(now, result) {
			s.t.Errorf("%q: later the result is %+v, was %+v", w.id, now, result)
		}
		if err := ours(resp.Request.Header, w.id); err != nil {
			s.t.Errorf("later the response's request has %v", err)
		}
		s.readAnswer(w, resp)
		resp.Header.Set("X-Id", "spoiled by its caller")
		resp.Header["X-Id"][0] = "spoiled by its caller"
		req.Header.Set("X-Op", "spoiled by its caller")
	}
}

// readAnswer looks at the answer, which may have been read before, and which the
// end of the caller's context may cut if it is too large to keep.
func (s *stress) readAnswer(w ware, resp *http.Response) {
	if got := resp.Header.Get("X-Id"); got != w.id || len(resp.Header) != 1 {
		s.t.Errorf("%q was given the answer to %q: %v", w.id, got, resp.Header)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil && !errors.Is(err, http.ErrBodyReadAfterClose) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		s.t.Errorf("%q: %v", w.id, err)
	}
	resp.Body.Close()
	sum := sha256.Sum256([]byte(w.body()))
	if want := w.id + "|" + hex.EncodeToString(sum[:]) + "|"; len(body) > 0 && !strings.HasPrefix(string(body), want) {
		s.t.Errorf("%q was given the answer %q", w.id, body[:min(len(body), len(want))])
	}
}

// work is one caller: own keys, generated ones, and such as others use at the same
// time. Answers are looked at again when more operations have gone by.
func (s *stress) work(caller, calls int) {
	var later [8]func()
	for i := range calls {
		w := ware{id: fmt.Sprintf("own-%d-%d", caller, i)}
		switch rand.IntN(8) {
		case 0, 1:
			w.key = oncehttp.Key("k-" + w.id)
		case 2:
			w.id = fmt.Sprintf("doomed-%d", i/3)
			w.key = oncehttp.Key("k-" + w.id)
		case 3, 4, 5:
			w.id = fmt.Sprintf("shared-%d-%d", i/3, rand.IntN(2))
			w.key = oncehttp.Key("k-" + w.id)
		}
		if look := later[i%len(later)]; look != nil {
			look()
		}
		later[i%len(later)] = s.call(w)
	}
	for _, look := range later {
		if look != nil {
			look()
		}
	}
}

// others is whoever comes upon calls without joining them.
func (s *stress) others(ctx context.Context, calls int) {
	for i := 0; ctx.Err() == nil; i++ {
		for res, err := range s.c.Resume(ctx) {
			var e *oncehttp.Error
			if err != nil && !errors.As(err, &e) && ctx.Err() == nil {
				s.t.Error(err)
			}
			if err == nil && res.Answer != nil && len(res.Answer.Body) > 0 {
				if id, _, _ := bytes.Cut(res.Answer.Body, []byte("|")); strings.HasPrefix(string(res.Key), "k-") && "k-"+string(id) != string(res.Key) {
					s.t.Errorf("%q was resumed with the answer to %q", res.Key, id)
				}
			}
		}
		n := rand.IntN(calls/3 + 1)
		if err := s.c.Abandon(ctx, oncehttp.Key(fmt.Sprintf("k-doomed-%d", n))); err != nil && !errors.Is(err, persist.ErrNotFound) {
			exactlyOneOrEnded(s.t, ctx, err)
		}
		w := ware{id: fmt.Sprintf("shared-%d-%d", n, rand.IntN(2))}
		if s.v.count(w.id) == 0 { // the other bytes would be the ones that begin
			continue
		}
		other := w.request(s.t, context.Background())
		other.Body, other.ContentLength = io.NopCloser(strings.NewReader(otherBytes)), -1
		if _, err := s.c.DoKey(other, oncehttp.Key("k-"+w.id)); !errors.Is(err, oncehttp.ErrKeyReused) {
			s.t.Errorf("other bytes under the key of %q: %v", w.id, err)
		}
		time.Sleep(200 * time.Microsecond)
	}
}

// exactlyOneOrEnded is exactlyOne, unless the context has ended, or the operation
// had ended before Abandon came to it.
func exactlyOneOrEnded(t *testing.T, ctx context.Context, err error) {
	if ctx.Err() == nil && !errors.Is(err, oncehttp.ErrFinal) {
		clienttest.ExactlyOne(t, err)
	}
}

// finish asks for what is in doubt until it is known.
func (s *stress) finish() {
	s.v.faults = false
	for w := range s.doubt {
		resp, err := s.c.DoKey(w.request(s.t, context.Background()), w.key)
		if err != nil {
			s.t.Errorf("%v at last: %v", w, err)
			continue
		}
		s.readAnswer(w, resp)
		if n := s.v.count(w.id); n != 1 {
			s.t.Errorf("%v took effect %d times", w, n)
		}
	}
	clienttest.Idle(s.t, s.c, s.j)
	s.t.Logf("%d answers, %d sends, %d in doubt", s.won, s.v.sent.Load(), len(s.doubt))
}

// run is callers side by side, and others beside them.
func (s *stress) run(callers, calls int) {
	ctx, end := context.WithCancel(context.Background())
	var work, others sync.WaitGroup
	others.Go(func() { s.others(ctx, calls) })
	for caller := range callers {
		work.Go(func() { s.work(caller, calls) })
	}
	work.Wait()
	end()
	others.Wait()
	s.finish()
}
