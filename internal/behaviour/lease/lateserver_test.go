package lease_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// lateTardy is a tardy journal that writes ends late: each takes a while before it is done and after it, and some fail.
type lateTardy struct {
	*tardy
	s       *lateStress
	refuses int           // how many in a hundred ends fail
	takes   time.Duration // the longest
	running atomic.Int64  // FinishLates that have not returned
}

var _ persist.LateFinisher = (*lateTardy)(nil)

var errRefused = errors.New("the journal refuses")

// FinishLate implements [persist.LateFinisher]. Of those that fail, half have changed nothing, and the others have.
func (j *lateTardy) FinishLate(ctx context.Context, rec persist.Record) error {
	j.running.Add(1)
	defer j.running.Add(-1)
	time.Sleep(j.rnd.upTo(j.takes))
	fails := j.rnd.below(100) < j.refuses && !j.s.calm.Load()
	if fails {
		j.s.mu.Lock()
		j.s.at(rec.Key).refused = true
		j.s.mu.Unlock()
	}
	if fails && j.rnd.below(2) == 0 {
		return errRefused
	}
	err := j.Journal.Finish(ctx, rec)
	time.Sleep(j.rnd.upTo(j.takes / 4))
	if fails && err == nil {
		return fmt.Errorf("the connection broke: %w", persist.ErrUncertain)
	}
	return err
}

func (j *lateTardy) FinishesLate() persist.Journal { return j }

// List takes a while after it has looked, too: what it gives may have moved on.
func (j *lateTardy) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	j.wait()
	return func(yield func(persist.Record, error) bool) {
		for rec, err := range j.Journal.List(ctx, q) {
			if j.wait(); !yield(rec, err) {
				return
			}
		}
	}
}

// underWay is how many ends are being written.
func (j *lateTardy) underWay() int64 { return j.running.Load() }

// RoundTrip is the server: it answers a key as it has answered it first. Some answers are lost.
func (s *lateStress) RoundTrip(req *http.Request) (*http.Response, error) {
	key := strings.Trim(req.Header.Get("Idempotency-Key"), `"`)
	takes, lucky := s.rnd.upTo(2*time.Second), s.rnd.below(100)
	s.maySend(key)
	if lucky < s.refusals && !s.calm.Load() {
		return (&wiretest.Wire{Replies: []wiretest.Reply{{Refused: true}}}).RoundTrip(req)
	}
	wiretest.HandedOver(req)
	s.wire(key, 1)
	time.Sleep(takes)
	answer := s.wire(key, -1)
	if lucky >= 100-s.lost && !s.calm.Load() {
		return nil, io.ErrUnexpectedEOF
	}
	return &http.Response{
		StatusCode: http.StatusCreated, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(answer)),
		ContentLength: int64(len(answer)), Request: req,
	}, nil
}

// maySend checks that a send is of an operation that has not ended, and whose answer nobody was told.
func (s *lateStress) maySend(key string) {
	op, rec := s.op(key), s.record(key)
	if rec.State != persist.StatePending || !rec.MaybeSent {
		s.t.Errorf("%s is sent; it is %v, marked: %t", key, rec.State, rec.MaybeSent)
	}
	if op.endedBy != "" || (op.told[0] || op.told[1]) && !op.refused {
		s.t.Errorf("%s is sent after it was ended (%s) or its answer told", key, op.endedBy)
	}
}

// wire notes that a request is on the wire, or no more, and gives the answer to its key.
func (s *lateStress) wire(key string, more int) (answer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	op := s.at(key)
	if op.onWire += more; op.onWire > 1 {
		s.t.Errorf("%s is on the wire %d times", key, op.onWire)
	}
	if op.answer == "" {
		op.answer = "done: " + key
	}
	return op.answer
}

// op is the operation of a key, as it was at one moment.
func (s *lateStress) op(key string) lateOperation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.at(key)
}

// at is what is noted of a key. Under mu.
func (s *lateStress) at(key string) *lateOperation {
	if s.ops[key] == nil {
		s.ops[key] = &lateOperation{}
	}
	return s.ops[key]
}

// enter notes that a call begins, or has ended, and gives the operation as it is then.
func (s *lateStress) enter(key string, more int) lateOperation {
	s.mu.Lock()
	defer s.mu.Unlock()
	op := s.at(key)
	if op.calls += more; op.calls > 1 || s.passes > 0 {
		op.crowded++
	}
	return *op
}

// inFlight reports whether a call may say that another one is running the operation: before is how it was as the call began.
func (s *lateStress) inFlight(process int, op, before *lateOperation, err error) bool {
	runs := s.runs[2]
	if process == 0 {
		runs = s.runs[0] + s.runs[1]
	}
	beside := runs > 0 || before.calls > 1 || op.crowded > before.crowded || s.passes > 0
	return beside && errors.Is(err, oncehttp.ErrInFlight)
}

// answered is the keys whose answers a process has told, and whose ends the journal has not refused.
func (s *lateStress) answered(process int) (keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, op := range s.ops {
		if op.told[process] && !op.refused {
			keys = append(keys, key)
		}
	}
	return keys
}

// toldOf is the keys whose answers a process has told.
func (s *lateStress) toldOf(process int) (keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, op := range s.ops {
		if op.told[process] {
			keys = append(keys, key)
		}
	}
	return keys
}

// ended checks that the records of these keys say that they have ended.
func (s *lateStress) ended(after string, keys []string) {
	for _, key := range keys {
		if rec := s.record(key); !rec.State.Final() {
			s.t.Errorf("after %s, %s, whose answer was told, is %v", after, key, rec.State)
		}
	}
}

// final checks that the records of these keys say that they are confirmed.
func (s *lateStress) final(after string, keys []string) {
	for _, key := range keys {
		if rec := s.record(key); rec.State != persist.StateConfirmed && !s.op(key).refused {
			s.t.Errorf("after %s, %s, whose answer was told, is %v", after, key, rec.State)
		}
	}
}

// closed closes all clients of a process, and checks what they have left.
func (s *lateStress) closed(process int, clients ...*oncehttp.Client) {
	before := s.answered(process)
	for _, c := range clients {
		if err := c.Close(); err != nil {
			s.t.Errorf("Close: %v", err)
		}
	}
	if n := s.journals[process].underWay(); n > 0 {
		s.t.Errorf("Close has returned, and %d ends are still being written", n)
	}
	s.final("Close", before)
}
