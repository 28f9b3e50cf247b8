package operation

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// The first reason that forbids a call something is the one that it hears: nothing of a record is told before it is known whose it is.
func TestOpen(t *testing.T) {
	t.Parallel()
	const pending, held, confirmed, settled = persist.StatePending, persist.StateHeld, persist.StateConfirmed, persist.StateSettled
	same := Call{Request: Same}
	for name, c := range map[string]struct {
		op   Op
		call Call
		want Opening
	}{
		"sealed":                      {Op{}, Call{Unreadable: true, Elsewhere: true, Strange: true, Request: Incomparable}, SaysUnreadable},
		"of another scope":            {Op{}, Call{Elsewhere: true, Strange: true, Request: Incomparable}, SaysElsewhere},
		"another caller's":            {Op{State: confirmed}, Call{Strange: true, Request: Incomparable}, SaysStranger},
		"not comparable":              {Op{State: confirmed}, Call{Request: Incomparable}, SaysIncomparable},
		"another request":             {Op{State: confirmed, Answered: true}, Call{Request: Other}, SaysOther},
		"replaced, refused":           {Op{State: confirmed, Standing: Refused, Answered: true}, Call{Request: Same, Replaced: true}, SaysReplaced},
		"replaced, refused, enqueued": {Op{State: confirmed, Standing: Refused, Answered: true}, Call{Request: Same, Replaced: true, Enqueues: true}, SaysReplaced},
		"replaced, absent":            {Op{State: persist.StateSettled, Standing: Absent}, Call{Request: Same, Replaced: true}, SaysReplaced},
		"replaced, another request":   {Op{State: persist.StateSettled, Standing: Absent}, Call{Request: Other, Replaced: true}, SaysOther},
		"replaced, done":              {Op{State: confirmed, Standing: Succeeded, Answered: true}, Call{Request: Same, Replaced: true}, GivesAnswer},
		"not compared":                {Op{State: confirmed, Answered: true}, Call{}, SaysOther},
		"confirmed":                   {Op{State: confirmed, Answered: true, AskAgain: true}, same, GivesAnswer},
		"confirmed, without a key":    {Op{State: confirmed, Answered: true}, Call{Request: Same, Keyless: true}, GivesAnswer},
		"too large to keep":           {Op{State: confirmed, Answered: true, Dropped: true, AskAgain: true}, same, AsksAgain},
		"dropped, not stored there":   {Op{State: confirmed, Answered: true, Dropped: true}, same, SaysGone},
		"swept":                       {Op{State: confirmed}, same, SaysGone},
		"mismatched":                  {Op{State: persist.StateMismatched, Answered: true}, same, SaysMismatch},
		"abandoned":                   {Op{State: persist.StateAbandoned, Answered: true}, same, SaysAbandoned},
		"settled as absent":           {Op{State: settled, Standing: Absent, Answered: true, Status: 503}, same, SaysAbsent},
		"settled, with the answer":    {Op{State: settled, Standing: Happened, Answered: true, Status: 201}, same, GivesAnswer},
		"settled, without its status": {Op{State: settled, Standing: Happened, Answered: true}, same, SaysHappened},
		"settled, dropped":            {Op{State: settled, Standing: Happened, Answered: true, Dropped: true, Status: 201, AskAgain: true}, same, SaysHappened},
		"settled, no answer":          {Op{State: settled, Standing: Happened}, same, SaysHappened},
		"held as unread":              {Op{State: held, Hold: persist.HoldUnread, Answered: true}, same, ReadsAgain},
		"held as unread, no answer":   {Op{State: held, Hold: persist.HoldUnread}, same, SaysHeld},
		"held, with an answer":        {Op{State: held, Hold: persist.HoldMismatch, Answered: true}, same, SaysHeld},
		"held, sent elsewhere":        {Op{State: held, Hold: persist.HoldExpired}, Call{Request: Same, Keyless: true}, SaysHeld},
		"held for a caller":           {Op{State: held, Hold: persist.HoldCaller, Answered: true}, same, Adopts},
		"sent elsewhere, no key":      {Op{State: pending}, Call{Request: Same, Keyless: true}, SaysInFlight},
		"pending, with an answer":     {Op{State: pending, Answered: true}, same, Adopts},
		"enqueued, pending":           {Op{State: pending}, Call{Request: Same, Enqueues: true}, Promises},
		"enqueued, held":              {Op{State: held, Hold: persist.HoldUnread, Answered: true}, Call{Request: Same, Enqueues: true}, Promises},
		"enqueued, confirmed":         {Op{State: confirmed, Answered: true}, Call{Request: Same, Enqueues: true}, Promises},
		"enqueued, another caller's":  {Op{State: confirmed}, Call{Strange: true, Request: Same, Enqueues: true}, SaysStranger},
		"enqueued, not comparable":    {Op{State: pending}, Call{Request: Incomparable, Enqueues: true}, SaysIncomparable},
		"enqueued, another request":   {Op{State: pending}, Call{Request: Other, Enqueues: true}, SaysOther},
	} {
		if got := c.op.Open(c.call); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// A call looks again only where an answer may be ahead of the record, and tells of an end only what it then tells its caller.
func TestMayLag(t *testing.T) {
	t.Parallel()
	for says := range Adopts + 1 {
		other := says == SaysIncomparable || says == SaysOther
		for _, state := range []persist.State{persist.StatePending, persist.StateHeld, persist.StateConfirmed, persist.StateAbandoned} {
			op := Op{State: state}
			if got, want := op.MayLag(says), other && !state.Final(); got != want {
				t.Errorf("%d of a record that is %s: %t, want %t", says, state, got, want)
			}
		}
	}
	if Promises.Tells() || !SaysOther.Tells() {
		t.Error("an Enqueue tells of an end before it is decided, or does not tell of another request's")
	}
}

// An operation that was never sent is late past its time, also if a claim has it. One that was sent is not.
func TestAdopt(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		op      Op
		claimed bool
		want    Mark
	}{
		"no bound":          {Op{}, false, Marks},
		"in time":           {Op{SendBefore: now}, false, Marks},
		"claimed":           {Op{SendBefore: now}, true, MarkedBy},
		"late":              {Op{SendBefore: now.Add(-1)}, true, IsLate},
		"late, and sent":    {Op{SendBefore: now.Add(-1), MaybeSent: true}, false, Marks},
		"late, and claimed": {Op{SendBefore: now.Add(-1), MaybeSent: true}, true, MarkedBy},
	} {
		if got := c.op.Adopt(now, c.claimed); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// The mark never moves a first send, waits for a token, and never brings the end of the last send forward.
func TestMarked(t *testing.T) {
	t.Parallel()
	early, first, until := time.Unix(10, 0), time.Unix(20, 0), time.Unix(30, 0)
	for name, c := range map[string]struct{ op, want Op }{
		"never sent":         {Op{}, Op{MaybeSent: true, FirstSent: first, SendUntil: until}},
		"held for a caller":  {Op{State: persist.StateHeld, Hold: persist.HoldCaller, MaybeSent: true, FirstSent: early}, Op{MaybeSent: true, FirstSent: early, SendUntil: until}},
		"sent, to last long": {Op{MaybeSent: true, FirstSent: early, SendUntil: until.Add(1)}, Op{MaybeSent: true, FirstSent: early, SendUntil: until.Add(1)}},
		"wants a token":      {Op{ServerToken: true}, Op{ServerToken: true}},
	} {
		if got := c.op.Marked(first, until); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// Only what was provably without effect begins without a doubt.
func TestBegins(t *testing.T) {
	t.Parallel()
	for op, want := range map[Op]Given{
		{}:                          {Pass: true},
		{Sends: 2}:                  {Pass: true, Refused: true},
		{MaybeSent: true}:           {Pass: true, Doubted: true},
		{MaybeSent: true, Sends: 2}: {Pass: true, Doubted: true},
	} {
		if got := op.Begins(Given{Pass: true, Refused: true, Doubted: true}); got != want {
			t.Errorf("%+v: %+v, want %+v", op, got, want)
		}
	}
}

// TestProspect: the first thing in the way of a send is the one that a person hears.
func TestProspect(t *testing.T) {
	t.Parallel()
	now := time.Unix(10000, 0)
	sent := Op{MaybeSent: true, FirstSent: now.Add(-time.Minute), Window: time.Hour, Protected: true}
	over, proven, bare, early := sent, sent, sent, sent
	over.FirstSent, proven.Witnessed, bare.Protected, early.FirstSent = now.Add(-time.Hour), true, false, now.Add(time.Second)
	late := Op{SendBefore: now.Add(-1), Window: time.Hour}
	for name, c := range map[string]struct {
		op   Op
		want Prospect
	}{
		"sent":                  {sent, WillBeSent},
		"never sent":            {Op{Window: time.Hour}, WillBeSent},
		"in time":               {Op{SendBefore: now}, WillBeSent},
		"due now":               {Op{NextAttempt: now}, WillBeSent},
		"due later":             {Op{NextAttempt: now.Add(1), SendBefore: now.Add(-1)}, WaitsForTime},
		"held":                  {Op{State: persist.StateHeld}, WaitsForTruth},
		"held by a Rekey":       {Op{State: persist.StateHeld, Hold: persist.HoldRekey, NextAttempt: now.Add(1)}, WaitsForWord},
		"pending, for a Rekey":  {Op{Hold: persist.HoldRekey}, WillBeSent},
		"without a key":         {bare, WillHaveNoKey},
		"before its first send": {early, WaitsForClock},
		"late":                  {late, WillBeLate},
		"its window over":       {over, WillExpire},
		"proven, in its window": {proven, WillBeProven},
	} {
		if got := c.op.Prospect(now); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestMayRecall: an answer is given without a call only where a call would give it, and would write nothing.
func TestMayRecall(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*persist.Record)
		want   bool
	}{
		"confirmed":            {func(*persist.Record) {}, true},
		"pending":              {func(r *persist.Record) { r.State = persist.StatePending }, false},
		"no answer":            {func(r *persist.Record) { r.Answer = nil }, false},
		"without its body":     {func(r *persist.Record) { r.Answer.BodyDropped = true }, false},
		"unreported":           {func(r *persist.Record) { r.Unreported = true }, false},
		"refused, not told":    {func(r *persist.Record) { r.Effect = persist.EffectRefused }, false},
		"refused, and told":    {func(r *persist.Record) { r.Effect, r.Told = persist.EffectRefused, true }, true},
		"settled, and told of": {func(r *persist.Record) { r.State, r.Told = persist.StateSettled, true }, false},
	} {
		rec := persist.Record{State: persist.StateConfirmed, Effect: persist.EffectHappened, Answer: &persist.Answer{Status: 200}}
		if c.change(&rec); MayRecall(&rec) != c.want {
			t.Errorf("%s: %t, want %t", name, !c.want, c.want)
		}
	}
}
