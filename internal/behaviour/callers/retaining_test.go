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
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// retaining is a transport that is a server of its own, honours keys, and keeps what
// it is given for longer than it may.
type retaining struct {
	t        *testing.T
	faults   bool
	lingers  sync.WaitGroup
	mu       sync.Mutex
	owner    map[string]string // of a key
	effects  map[string]int    // by id
	underWay map[string]int    // sends under way, by key
	sent     atomic.Int64
	lingered chan struct{} // bounds those who linger
}

func newRetaining(t *testing.T, faults bool) *retaining {
	v := &retaining{t: t, faults: faults, owner: map[string]string{}, effects: map[string]int{}, underWay: map[string]int{}, lingered: make(chan struct{}, 64)}
	t.Cleanup(v.lingers.Wait)
	return v
}

func (v *retaining) count(id string) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.effects[id]
}

// act takes effect, once for a key.
func (v *retaining) act(key, id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if owner, known := v.owner[key]; known {
		if owner != id {
			v.t.Errorf("key %q came with %q, then with %q", key, owner, id)
		}
		return
	}
	v.owner[key] = id
	if v.effects[id]++; v.effects[id] > 1 {
		v.t.Errorf("%q took effect %d times", id, v.effects[id])
	}
}

// meet reports two drives of one operation.
func (v *retaining) meet(key string) (part func()) {
	add := func(n int) {
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.underWay[key] += n; v.underWay[key] > 1 {
			v.t.Errorf("key %q is sent twice at the same time", key)
		}
	}
	add(1)
	return func() { add(-1) }
}

var errVandal = errors.New("the wire was cut")

func (v *retaining) RoundTrip(req *http.Request) (*http.Response, error) {
	v.sent.Add(1)
	id, key := req.Header.Get("X-Op"), wiretest.Key(req.Header)
	v.look(req, id, "as sent")
	defer v.meet(key)()
	trace := httptrace.ContextClientTrace(req.Context())
	trace.GetConn(req.URL.Host)

	dice := 100
	if v.faults {
		dice = rand.IntN(100)
	}
	if dice < 4 {
		v.linger(req, id, nil, nil)
		return nil, errVandal // no connection was had
	}
	trace.GotConn(httptrace.GotConnInfo{})
	early := rand.IntN(3) == 0 // answers before it has read the body
	var got []byte
	if !early {
		got, _ = io.ReadAll(req.Body)
		v.look(req, id, "as read")
		v.lookBody(got, id)
	}
	switch {
	case dice < 8: // before the effect
		v.linger(req, id, got, trace)
		return v.answer(req, []int{429, 503, 409}[rand.IntN(3)], id, 0), nil
	case dice < 11:
		v.act(key, id)
		v.linger(req, id, got, trace)
		return nil, errVandal
	case dice < 13:
		v.act(key, id)
		v.linger(req, id, got, trace)
		return v.answer(req, 500, id, 0), nil
	case dice < 16:
		v.act(key, id)
		v.linger(req, id, got, trace)
		resp := v.answer(req, 201, id, 0)
		resp.Body = io.NopCloser(io.MultiReader(io.LimitReader(resp.Body, 10), wiretest.Failing{Err: io.ErrUnexpectedEOF}))
		return resp, nil
	case dice < 19:
		select {
		case <-req.Context().Done():
			v.linger(req, id, got, trace)
			return nil, req.Context().Err()
		case <-time.After(time.Duration(rand.IntN(2000)) * time.Microsecond):
		}
	}
	v.act(key, id)
	v.linger(req, id, got, trace)
	large := 0
	if rand.IntN(15) == 0 {
		large = 3000
	}
	return v.answer(req, 201, id, large), nil
}

func (v *retaining) look(req *http.Request, id, when string) {
	if err := ours(req.Header, id); err != nil {
		v.t.Errorf("%s: %v", when, err)
	}
	if want := "https://api.example.com/pay/" + id + "?ref=" + id; req.URL.String() != want {
		v.t.Errorf("%s: %q for %q", when, req.URL, want)
	}
	if req.Host != "api.example.com" && req.Host != id+".example.com" {
		v.t.Errorf("%s: host %q for %q", when, req.Host, id)
	}
}

func (v *retaining) lookBody(got []byte, id string) {
	if want := (ware{id: id}).body(); string(got) != want {
		v.t.Errorf("body %q, want %q", got, want)
	}
}

// linger looks at the request when it is long over, reads what it has not read of
// its body, calls the hooks again, and writes over all that it can reach.
func (v *retaining) linger(req *http.Request, id string, got []byte, trace *httptrace.ClientTrace) {
	select {
	case v.lingered <- struct{}{}:
	default:
		return
	}
	key := wiretest.Key(req.Header)
	pause := time.Duration(rand.IntN(3000)) * time.Microsecond
	v.lingers.Go(func() {
		defer func() { <-v.lingered }()
		time.Sleep(pause)
		v.look(req, id, "long after")
		if now := wiretest.Key(req.Header); now != key {
			v.t.Errorf("long after: key %q, was %q", now, key)
		}
		if got == nil {
			got, _ = io.ReadAll(req.Body)
			v.lookBody(got, id)
		}
		req.Body.Close()
		for name, lines := range req.Header {
			for i := range lines {
				lines[i] = "retained"
			}
			req.Header[name] = append(lines, "retained")
		}
		req.Header.Set("X-Vandal", "1")
		req.URL.Path, req.URL.RawQuery, req.Host = "/retained", "", "retained"
		if trace != nil {
			trace.GetConn("retained")
			trace.GotConn(httptrace.GotConnInfo{Reused: true})
		}
	})
}

func (v *retaining) answer(req *http.Request, status int, id string, large int) *http.Response {
	sum := sha256.Sum256([]byte((ware{id: id}).body()))
	body := fmt.Sprintf("%s|%s|%s", id, hex.EncodeToString(sum[:]), strings.Repeat("x", large))
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"X-Id": {id}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: -1, Request: req,
	}
}

// otherBytes is what somebody sends under a key that is another request's.
const otherBytes = "other bytes"

// auditor is a journal that looks at every record that it is given.
type auditor struct {
	persist.Journal
	t    *testing.T
	mu   sync.Mutex
	sums map[persist.ID][]byte // fingerprints
}

// newAuditor audits a journal in memory, which has leases, as others do not.
func newAuditor(t *testing.T) persist.Journal {
	j := memory.New()
	return &struct {
		*auditor
		persist.Claimer
	}{auditing(t, j), j}
}

func auditing(t *testing.T, j persist.Journal) *auditor {
	return &auditor{Journal: j, t: t, sums: map[persist.ID][]byte{}}
}

func (a *auditor) look(where string, rec *persist.Record) {
	id := rec.Header.Get("X-Op")
	if err := ours(rec.Header, id); err != nil {
		a.t.Errorf("%s: %v", where, err)
	}
	if !rec.RequestDropped && string(rec.Body) != otherBytes && string(rec.Body) != (ware{id: id}).body() || rec.Target != "/pay/"+id+"?ref="+id {
		a.t.Errorf("%s: %q to %q under the headers of %q", where, rec.Body, rec.Target, id)
	}
	if rec.Answer != nil && rec.Answer.Header.Get("X-Id") != id {
		a.t.Errorf("%s: %q has the answer to %q", where, id, rec.Answer.Header.Get("X-Id"))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if string(rec.Body) == otherBytes {
		return
	}
	if was := a.sums[rec.ID]; was == nil {
		a.sums[rec.ID] = bytes.Clone(rec.Fingerprint)
	} else if !bytes.Equal(was, rec.Fingerprint) {
		a.t.Errorf("%s: the fingerprint of %q has changed", where, rec.Key)
	}
}

func (a *auditor) Begin(ctx context.Context, rec persist.Record) (persist.Record, bool, error) {
	a.look("Begin", &rec)
	return a.Journal.Begin(ctx, rec)
}

func (a *auditor) Update(ctx context.Context, rec persist.Record) (persist.Record, error) {
	a.look("Update", &rec)
	return a.Journal.Update(ctx, rec)
}

func (a *auditor) Finish(ctx context.Context, rec persist.Record) error {
	a.look("Finish", &rec)
	return a.Journal.Finish(ctx, rec)
}

func (a *auditor) Forget(ctx context.Context, rec persist.Record) error {
	a.look("Forget", &rec)
	return a.Journal.Forget(ctx, rec)
}
