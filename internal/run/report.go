package run

import "log/slog"

// report tells of the steps of a run: Config.Observe, the log, and by its span Config.Instrument. The record
// and the drive of the task must be at the step when it is told. If nobody hears of the run, no event is made.
type report struct {
	task    *task
	replies *replies // for the latest answer
	span    span     // of Config.Instrument

	lost   bool   // the loss of the lease is told
	latest *Event // of the run; nil: there was none
}

// heard reports whether the program has set Config.Observe. Otherwise no event is made, so that it costs nothing.
func (r *report) heard() bool { return r.task.cfg.Observe != nil }

// tellStep reports to Config.Observe that the run has come to this step; the event has only what each event of the run has.
func (r *report) tellStep(kind EventKind) {
	if r.heard() {
		r.tell(r.event(kind))
	}
}

// tell calls Config.Observe with one step of the run, unless Observe is nil. A panic of Observe goes on to the caller of tell, and ends the run.
func (r *report) tell(e *Event) {
	t := r.task
	if !r.heard() {
		return
	}
	// Observe may call the client: the work tells that such a call must not wait for this run.
	work := t.call.Work()
	work.Visit()
	defer work.Return()
	t.cfg.Observe(t.call.Values(), e)
}

// event returns an event of the run, as it stands. It is valid until the next one: all share one Event, since a
// run has many. Config.Observe gets a copy of the root's own type.
func (r *report) event(kind EventKind) *Event {
	t := r.task
	if r.latest == nil {
		r.latest = &Event{}
	}
	e := r.latest
	setEvent(e, kind, &t.rec, t.call.Number(), t.took)
	e.Attempt, e.Sends, e.Resumed = t.drive.Attempts(), t.sends(), !t.given.Created
	return e
}

// begins tells Config.Instrument of the run, if it is set. The context that it returns counts for the whole
// run, so begins comes before the first step.
func (r *report) begins() {
	if r.task.cfg.Instrument != nil {
		r.span.end = r.span.instrument(r.task.call.Context(), false, r.event(EventBegun))
	}
}

// tellRecorded reports to Config.Observe that a call gets the answer in the journal, if res has one. Nothing was sent for it.
func (r *report) tellRecorded(res *result) {
	if a := res.answer; a != nil && r.heard() {
		e := r.event(EventRecorded)
		e.Outcome, e.Status, e.Source = a.result.Outcome, a.status, SourceJournal
		r.tell(e)
	}
}

// tellOpened sends the events of a call that found the existing record of its operation, and ends without a send of its own.
func (r *report) tellOpened(res *result) {
	if res.err == nil {
		r.tellRecorded(res)
		return
	}
	if r.heard() {
		// Without a drive the call has begun nothing, whatever the record says.
		e := r.event(notBegunKind(res.err))
		e.Err, e.Hold = res.err, r.task.holds()
		r.tell(e)
	}
}

// tellHeld reports to Config.Observe that the run has held its operation (nothing sends it until a person or Config.Reconcile decides). It
// is called after the last write: before that, the record's hold is an earlier one.
func (r *report) tellHeld() {
	if hold := r.task.holds(); hold != "" && r.heard() {
		e := r.event(EventHeld)
		e.Hold, e.Rule = hold, ruleOf(r.task)
		r.tell(e)
	}
}

// tellLost tells, once, of the loss of the run's lease. err is the result of a check of it; nil: nothing is
// told. The run goes on to its end, and sends nothing more.
func (r *report) tellLost(err error) {
	if err == nil || r.lost {
		return
	}
	// Even if nobody hears it: the loss is not told a second time by another check.
	r.lost = true
	if r.heard() {
		e := r.event(EventLeaseLost)
		e.Err, e.Rule = err, ruleOfLeases
		r.tell(e)
	}
}

// tellLeft reports a run that has ended and given its operation back unfinished, since the limiter takes long. Another run of the same call follows.
func (r *report) tellLeft(res *result) {
	e := r.event(EventLeft)
	if e.Err = errLimited; res.err != nil {
		e.Err = res.err
	}
	// The run is over for a trace: the call goes on with another one.
	r.span.ends(e)
	r.tell(e)
}

// tellAnswered tells Config.Observe of the result of a send.
func (r *report) tellAnswered() {
	if r.heard() {
		r.tell(r.eventAnswered())
	}
}

// eventAnswered returns the event of the result of a send. After lookups it has the send's own answer, and the
// outcome that they have found.
func (r *report) eventAnswered() *Event {
	e := r.event(EventAnswered)
	e.Err, e.Outcome = r.replies.own.Err, r.task.known()
	e.answeredBy(r.replies.own.Answer, r.task.drive.Proof().Replayed)
	return e
}

// logAttempt logs the result of an attempt, as it stands after the lookups that followed it, at the level debug.
func (r *report) logAttempt() {
	t := r.task
	if !t.cfg.logs(t.call.Values(), slog.LevelDebug) {
		return
	}
	attrs := []slog.Attr{slog.Int("attempt", t.drive.Attempts()), slog.Int("sends", t.sends()), slog.String("outcome", t.known().String())}
	if r.replies.own.Answer != nil {
		attrs = append(attrs, slog.Int("status", r.replies.own.Answer.Head.StatusCode))
	}
	t.cfg.log(t.call.Values(), slog.LevelDebug, "an attempt has ended", t.rec.Key, r.replies.own.Err, attrs...)
}

// logEnd logs the result of a run with more than one attempt, or with an error.
func (r *report) logEnd(res *result) {
	t := r.task
	// The usual operation has no line: a log of each would cost more than it tells.
	if t.drive.Attempts() <= 1 && res.err == nil || !t.cfg.logs(t.call.Values(), slog.LevelInfo) {
		return
	}
	t.cfg.log(t.call.Values(), slog.LevelInfo, "an operation took more than one attempt, or has an error", t.rec.Key, res.err,
		slog.Int("attempts", t.drive.Attempts()), slog.Int("sends", t.sends()), slog.String("outcome", t.known().String()))
}
