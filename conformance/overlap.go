package conformance

import "time"

// sending is a request in the background, made by launch. answer is nil until over is closed:
// read it through wait.
type sending struct {
	sent chan struct{} // closed after its last byte, or a failure
	over chan struct{} // closed when answer is set
	*answer
}

// launch sends op in the background, on a connection of its own, and returns at once. The
// request ends by itself, within Options.AnswerTimeout. lane and note label it in the report.
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

// overlap is a slow request, the leader, with the requests sent while it ran.
type overlap struct {
	op        *operation // of the leader
	leader    *answer
	followers []*answer     // one at least, of op or of another operation
	hold      time.Duration // the time for which the leader was to be at work
}

// all returns the answers to requests that were at work at the same time: that to the first one (leader), then those to the
// others.
func (v *overlap) all() []*answer { return append([]*answer{v.leader}, v.followers...) }

// rejected returns the first duplicate (follower) that was told "in progress" before the first request (leader) had its answer; nil if there is none.
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

// overlapped sends duplicates (followers) while a slow first request (the leader) is at work, and makes sure of the overlap: each was sent after it,
// and was answered before its end or had been waiting for long. Without an overlap it tries longer work. followers returns the operations to send,
// from the leader's. A leader without any answer ends the tries, too. False: no overlap came about, or the leader did not succeed, and the case is
// inconclusive.
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

// overtaken reports whether the request meant as the first (the leader) came second: it was answered, and without the outcome, as duplicates are.
// Such a try shows nothing, and is made again.
func overtaken(leader *answer) bool { return leader.kind != noAnswer && !leader.outcome() }

// holding calls try with Options.Hold, and with threefold holds, until it returns true: the requests overlapped. They may fail to on a busy machine,
// which is no fault of the server. After holdTriesMax tries the case is inconclusive. A try that met a rate limit is made again, holdTriesMax times
// at most, after the wait that the limit asks for, and does not count.
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

// tryOverlap makes one try to send a request and duplicates (followers) that arrive while the server works on it. v holds the answers. proved is
// false if they may not have overlapped: a request of less than three quarters of hold was not slow, and a duplicate that a rate limit refused, or
// that was never written, did not meet it. All of them have ended when it returns. gate holds the operation at work in the suite's own handler; for
// another server gate.entered is nil, and only the time tells when it is at work.
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

// met reports whether a duplicate (the follower, with answer a) met the first request at work: it was answered before the end of the hold (the time
// of that work), or had been waiting for half of it by then. It is for servers behind a URL, where only the time tells. A server may let it wait for
// the first request, so that an answer after that is no proof against it.
func (v *overlap) met(a *answer) bool {
	end := v.leader.started.Add(v.hold)
	return a.ended.Before(end) || a.written.Before(end.Add(-v.hold/2))
}

// leadPart is the part of a hold, as a divisor, by which the leader is ahead of its followers.
const leadPart = 4

// awaitEntry waits until the first request (the leader) is at work: with the suite's own handler, whose gate tells it exactly, else for a part of the
// hold, the time of its work. The end of the leader, Options.AnswerTimeout and the end of the case end the wait.
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

// followersGrace is the time after which followers without an answer count as waiting.
const followersGrace = 60 * time.Millisecond

// awaitFollowers waits until all duplicates are written, and then for their answers, followersGrace at most: a server may let them wait for the first
// request.
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

// same returns a function for overlapped that sends the same operation n times as duplicates.
func same(n int) func(*operation) []*operation {
	return func(op *operation) []*operation {
		all := make([]*operation, n)
		for i := range all {
			all[i] = op
		}
		return all
	}
}
