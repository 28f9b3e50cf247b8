package conformance

import "time"

// sending is a request that was sent in the background.
type sending struct {
	sent chan struct{} // closed when its last byte has been written, or it failed
	over chan struct{} // closed when its answer is there
	*answer
}

// launch sends op in the background, on a connection of its own. The request ends
// by itself, within Options.AnswerTimeout. lane and note go into the report.
func (x *trial) launch(op *operation, lane, note string) *sending {
	f := &sending{sent: make(chan struct{}), over: make(chan struct{})}
	go func() {
		defer close(f.over)
		l := x.dial(lane)
		defer x.park(l)
		l.load(op, withLength)
		l.note = note
		l.write(0)
		close(f.sent)
		f.answer = l.receive()
	}()
	return f
}

// wait blocks until the request has ended, and returns its answer.
func (f *sending) wait() *answer {
	<-f.over
	return f.answer
}

// overlap is a slow leader and what was sent while it ran.
type overlap struct {
	op        *operation
	leader    *answer
	followers []*answer
	hold      time.Duration
}

// all are the answers to the operation itself.
func (v *overlap) all() []*answer { return append([]*answer{v.leader}, v.followers...) }

// rejected is the first follower that was told to wait before the leader had its
// answer; nil: there is none.
func (v *overlap) rejected() *answer {
	for _, a := range v.followers {
		if a.kind == busy && a.ended.Before(v.leader.ended) {
			return a
		}
	}
	return nil
}

// holdTriesMax is how often a longer hold is tried.
const holdTriesMax = 3

// overlapped sends followers while a leader runs, and proves it: each follower
// was sent after the leader had been written, and was answered before the
// leader, or had been waiting for a good while when the leader was. Where that
// does not come about, the leader is held longer; at last the case is
// inconclusive. followers makes what is sent of the leader's operation.
func (x *trial) overlapped(followers func(op *operation) []*operation) (*overlap, bool) {
	var found *overlap
	x.holding(func(hold time.Duration) bool {
		v, proved := x.tryOverlap(hold, followers)
		if overtaken(v.leader) || v.leader.outcome() && !proved {
			return false
		}
		found = v
		return true
	})
	return found, found != nil && x.setup(found.leader)
}

// overtaken reports whether what was meant to be first came second, and was
// answered as duplicates are.
func overtaken(leader *answer) bool { return leader.kind != noAnswer && !leader.outcome() }

// holding calls try with Options.Hold, then with longer holds, until it returns
// true: the requests overlapped. On a busy machine they may not, since the leader
// is overtaken, or answered before the others were sent. That is no fault of the
// server: after holdTriesMax tries the case is inconclusive. A try that met a limit on the rate of requests says nothing: it is made
// again after the wait that the limit asks for, as often at most.
func (x *trial) holding(try func(hold time.Duration) bool) {
	hold, limits := x.r.o.Hold, 0
	for tries := 0; tries < holdTriesMax; {
		x.takeLimit() // of what was sent before
		if x.ctx.Err() != nil || x.over() || try(hold) {
			return
		}
		if wait := x.takeLimit(); wait > 0 && limits < holdTriesMax {
			limits++
			x.pause(wait)
			continue
		}
		hold, tries = 3*hold, tries+1
	}
	x.inconclusive("no overlap came about, though the operation was to be held for %v (--delay-query, --hold)", hold/3)
}

// tryOverlap is one try of overlapped with one hold. proved is false if the
// requests did not overlap for certain.
func (x *trial) tryOverlap(hold time.Duration, followers func(op *operation) []*operation) (v *overlap, proved bool) {
	v = &overlap{op: x.newOperation(), hold: hold}
	gate := x.r.steering.hold(v.op, hold)
	defer gate.release()
	lead := x.launch(v.op, "leader", "slow")
	<-lead.sent
	x.awaitEntry(gate, lead, hold)
	var sendings []*sending
	for _, op := range followers(v.op) {
		sendings = append(sendings, x.launch(op, "follower", "while the leader runs"))
	}
	if gate.entered != nil {
		x.awaitFollowers(sendings)
		gate.release()
	}
	v.leader = lead.wait()
	proved = gate.entered != nil || v.leader.ended.Sub(v.leader.started) >= hold*3/4 // else it was not slow
	for _, f := range sendings {
		a := f.wait()
		v.followers = append(v.followers, a)
		proved = proved && !x.r.limited(a) && !a.written.IsZero() && (gate.entered != nil || v.met(a))
	}
	return v, proved
}

// met reports whether a follower met the leader at work, which does not end before
// the hold is over: it was answered by then, or had been waiting for a good while.
func (v *overlap) met(a *answer) bool {
	end := v.leader.started.Add(v.hold)
	return a.ended.Before(end) || a.written.Before(end.Add(-v.hold/2))
}

// leadPart is the part of a hold by which the leader is ahead.
const leadPart = 4

// awaitEntry waits until the leader's handler runs: exactly, if the handler is the
// suite's own; else it waits for a part of the hold.
func (x *trial) awaitEntry(g *gate, lead *sending, hold time.Duration) {
	if g.entered == nil {
		x.pause(hold / leadPart)
		return
	}
	timer := time.NewTimer(x.r.o.AnswerTimeout)
	defer timer.Stop()
	select {
	case <-g.entered:
	case <-lead.over:
	case <-timer.C:
	case <-x.ctx.Done():
	}
}

// followersGrace is for how long followers that are not answered at once are
// taken to be waiting.
const followersGrace = 60 * time.Millisecond

// awaitFollowers waits until all have been written, and then a little for their
// answers.
func (x *trial) awaitFollowers(sendings []*sending) {
	timer := time.NewTimer(x.r.o.AnswerTimeout)
	defer timer.Stop()
	for _, f := range sendings {
		select {
		case <-f.sent:
		case <-timer.C:
			return
		case <-x.ctx.Done():
			return
		}
	}
	timer.Reset(followersGrace)
	for _, f := range sendings {
		select {
		case <-f.over:
		case <-timer.C:
			return
		case <-x.ctx.Done():
			return
		}
	}
}

// same makes n followers of the leader's own operation.
func same(n int) func(*operation) []*operation {
	return func(op *operation) []*operation {
		all := make([]*operation, n)
		for i := range all {
			all[i] = op
		}
		return all
	}
}
