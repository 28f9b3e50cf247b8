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
		"another caller's":            {Op{Phase: Phase{State: confirmed}}, Call{Strange: true, Request: Incomparable}, SaysStranger},
		"not comparable":              {Op{Phase: Phase{State: confirmed}}, Call{Request: Incomparable}, SaysIncomparable},
		"another request":             {Op{Phase: Phase{State: confirmed}, Recorded: Recorded{Answered: true}}, Call{Request: Other}, SaysOther},
		"replaced, refused":           {Op{Phase: Phase{State: confirmed, Standing: Refused}, Recorded: Recorded{Answered: true}}, Call{Request: Same, Replaced: true}, SaysReplaced},
		"replaced, refused, enqueued": {Op{Phase: Phase{State: confirmed, Standing: Refused}, Recorded: Recorded{Answered: true}}, Call{Request: Same, Replaced: true, Enqueues: true}, SaysReplaced},
		"replaced, absent":            {Op{Phase: Phase{State: persist.StateSettled, Standing: Absent}}, Call{Request: Same, Replaced: true}, SaysReplaced},
		"replaced, another request":   {Op{Phase: Phase{State: persist.StateSettled, Standing: Absent}}, Call{Request: Other, Replaced: true}, SaysOther},
		"replaced, done":              {Op{Phase: Phase{State: confirmed, Standing: Succeeded}, Recorded: Recorded{Answered: true}}, Call{Request: Same, Replaced: true}, GivesAnswer},
		"not compared":                {Op{Phase: Phase{State: confirmed}, Recorded: Recorded{Answered: true}}, Call{}, SaysOther},
		"confirmed":                   {Op{Phase: Phase{State: confirmed}, Recorded: Recorded{Answered: true, AskAgain: true}}, same, GivesAnswer},
		"confirmed, without a key":    {Op{Phase: Phase{State: confirmed}, Recorded: Recorded{Answered: true}}, Call{Request: Same, Keyless: true}, GivesAnswer},
		"too large to keep":           {Op{Phase: Phase{State: confirmed}, Recorded: Recorded{Answered: true, Dropped: true, AskAgain: true}}, same, AsksAgain},
		"dropped, not stored there":   {Op{Phase: Phase{State: confirmed}, Recorded: Recorded{Answered: true, Dropped: true}}, same, SaysGone},
		"swept":                       {Op{Phase: Phase{State: confirmed}}, same, SaysGone},
		"refused":                     {Op{Phase: Phase{State: confirmed, Standing: Refused}, Recorded: Recorded{Answered: true, Status: 402}}, same, GivesAnswer},
		"refused, and proven":         {Op{Phase: Phase{State: confirmed, Standing: Refused, Witnessed: true}, Recorded: Recorded{Answered: true, Status: 402}}, same, SaysContradicted},
		"refused, proven, dropped":    {Op{Phase: Phase{State: confirmed, Standing: Refused, Witnessed: true}, Recorded: Recorded{Answered: true, Dropped: true, AskAgain: true}}, same, SaysContradicted},
		"done, and proven":            {Op{Phase: Phase{State: confirmed, Standing: Succeeded, Witnessed: true}, Recorded: Recorded{Answered: true, Status: 201}}, same, GivesAnswer},
		"mismatched":                  {Op{Phase: Phase{State: persist.StateMismatched}, Recorded: Recorded{Answered: true}}, same, SaysMismatch},
		"abandoned":                   {Op{Phase: Phase{State: persist.StateAbandoned}, Recorded: Recorded{Answered: true}}, same, SaysAbandoned},
		"settled as absent":           {Op{Phase: Phase{State: settled, Standing: Absent}, Recorded: Recorded{Answered: true, Status: 503}}, same, SaysAbsent},
		"settled, with the answer":    {Op{Phase: Phase{State: settled, Standing: Happened}, Recorded: Recorded{Answered: true, Status: 201}}, same, GivesAnswer},
		"settled, without its status": {Op{Phase: Phase{State: settled, Standing: Happened}, Recorded: Recorded{Answered: true}}, same, SaysHappened},
		"settled, dropped":            {Op{Phase: Phase{State: settled, Standing: Happened}, Recorded: Recorded{Answered: true, Dropped: true, Status: 201, AskAgain: true}}, same, SaysHappened},
		"settled, no answer":          {Op{Phase: Phase{State: settled, Standing: Happened}}, same, SaysHappened},
		"held as unread":              {Op{Phase: Phase{State: held, Hold: persist.HoldUnread}, Recorded: Recorded{Answered: true}}, same, ReadsAgain},
		"held as unread, no answer":   {Op{Phase: Phase{State: held, Hold: persist.HoldUnread}}, same, SaysHeld},
		"held, with an answer":        {Op{Phase: Phase{State: held, Hold: persist.HoldMismatch}, Recorded: Recorded{Answered: true}}, same, SaysHeld},
		"held, sent elsewhere":        {Op{Phase: Phase{State: held, Hold: persist.HoldExpired}}, Call{Request: Same, Keyless: true}, SaysHeld},
		"held for a caller":           {Op{Phase: Phase{State: held, Hold: persist.HoldCaller}, Recorded: Recorded{Answered: true}}, same, Adopts},
		"sent elsewhere, no key":      {Op{Phase: Phase{State: pending}}, Call{Request: Same, Keyless: true}, SaysInFlight},
		"pending, with an answer":     {Op{Phase: Phase{State: pending}, Recorded: Recorded{Answered: true}}, same, Adopts},
		"enqueued, pending":           {Op{Phase: Phase{State: pending}}, Call{Request: Same, Enqueues: true}, Promises},
		"enqueued, held":              {Op{Phase: Phase{State: held, Hold: persist.HoldUnread}, Recorded: Recorded{Answered: true}}, Call{Request: Same, Enqueues: true}, Promises},
		"enqueued, confirmed":         {Op{Phase: Phase{State: confirmed}, Recorded: Recorded{Answered: true}}, Call{Request: Same, Enqueues: true}, Promises},
		"enqueued, another caller's":  {Op{Phase: Phase{State: confirmed}}, Call{Strange: true, Request: Same, Enqueues: true}, SaysStranger},
		"enqueued, not comparable":    {Op{Phase: Phase{State: pending}}, Call{Request: Incomparable, Enqueues: true}, SaysIncomparable},
		"enqueued, another request":   {Op{Phase: Phase{State: pending}}, Call{Request: Other, Enqueues: true}, SaysOther},
	} {
		if got := c.call.Open(&c.op); got != c.want {
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
			op := Op{Phase: Phase{State: state}}
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
		"in time":           {Op{Sending: Sending{SendBefore: now}}, false, Marks},
		"claimed":           {Op{Sending: Sending{SendBefore: now}}, true, MarkedBy},
		"late":              {Op{Sending: Sending{SendBefore: now.Add(-1)}}, true, IsLate},
		"late, and sent":    {Op{Sending: Sending{SendBefore: now.Add(-1), MaybeSent: true}}, false, Marks},
		"late, and claimed": {Op{Sending: Sending{SendBefore: now.Add(-1), MaybeSent: true}}, true, MarkedBy},
	} {
		if got := Adopt(&c.op, now, c.claimed); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// The mark never moves a first send, waits for a token, and never brings the end of the last send forward.
func TestMarked(t *testing.T) {
	t.Parallel()
	early, first, until := time.Unix(10, 0), time.Unix(20, 0), time.Unix(30, 0)
	for name, c := range map[string]struct{ op, want Op }{
		"never sent":         {Op{}, Op{Sending: Sending{MaybeSent: true, FirstSent: first, SendUntil: until}}},
		"held for a caller":  {Op{Phase: Phase{State: persist.StateHeld, Hold: persist.HoldCaller}, Sending: Sending{MaybeSent: true, FirstSent: early}}, Op{Sending: Sending{MaybeSent: true, FirstSent: early, SendUntil: until}}},
		"sent, to last long": {Op{Sending: Sending{MaybeSent: true, FirstSent: early, SendUntil: until.Add(1)}}, Op{Sending: Sending{MaybeSent: true, FirstSent: early, SendUntil: until.Add(1)}}},
		"wants a token":      {Op{KeyFacts: KeyFacts{ServerToken: true}}, Op{KeyFacts: KeyFacts{ServerToken: true}}},
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
		{}:                                  {Pass: true},
		{Sending: Sending{Sends: 2}}:        {Pass: true, Refused: true},
		{Sending: Sending{MaybeSent: true}}: {Pass: true, Doubted: true},
		{Sending: Sending{MaybeSent: true, Sends: 2}}: {Pass: true, Doubted: true},
	} {
		if got := (Given{Pass: true, Refused: true, Doubted: true}).After(&op.Sending); got != want {
			t.Errorf("%+v: %+v, want %+v", op, got, want)
		}
	}
}

// TestProspect: the first thing in the way of a send is the one that a person hears.
func TestProspect(t *testing.T) {
	t.Parallel()
	now := time.Unix(10000, 0)
	sent := Op{KeyFacts: KeyFacts{Protected: true}, Sending: Sending{MaybeSent: true, FirstSent: now.Add(-time.Minute), Window: time.Hour}}
	over, proven, bare, early := sent, sent, sent, sent
	over.FirstSent, proven.Witnessed, bare.Protected, early.FirstSent = now.Add(-time.Hour), true, false, now.Add(time.Second)
	late := Op{Sending: Sending{SendBefore: now.Add(-1), Window: time.Hour}}
	for name, c := range map[string]struct {
		op   Op
		want Prospect
	}{
		"sent":                  {sent, WillBeSent},
		"never sent":            {Op{Sending: Sending{Window: time.Hour}}, WillBeSent},
		"in time":               {Op{Sending: Sending{SendBefore: now}}, WillBeSent},
		"due now":               {Op{Sending: Sending{NextAttempt: now}}, WillBeSent},
		"due later":             {Op{Sending: Sending{NextAttempt: now.Add(1), SendBefore: now.Add(-1)}}, WaitsForTime},
		"held":                  {Op{Phase: Phase{State: persist.StateHeld}}, WaitsForTruth},
		"held by a Rekey":       {Op{Phase: Phase{State: persist.StateHeld, Hold: persist.HoldRekey}, Sending: Sending{NextAttempt: now.Add(1)}}, WaitsForWord},
		"pending, for a Rekey":  {Op{Phase: Phase{Hold: persist.HoldRekey}}, WillBeSent},
		"without a key":         {bare, WillHaveNoKey},
		"before its first send": {early, WaitsForClock},
		"late":                  {late, WillBeLate},
		"its window over":       {over, WillExpire},
		"proven, in its window": {proven, WillBeProven},
	} {
		if got := ProspectOf(&c.op, now); got != c.want {
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
		"confirmed":         {func(*persist.Record) {}, true},
		"pending":           {func(r *persist.Record) { r.State = persist.StatePending }, false},
		"no answer":         {func(r *persist.Record) { r.Answer = nil }, false},
		"without its body":  {func(r *persist.Record) { r.Answer.BodyDropped = true }, false},
		"unreported":        {func(r *persist.Record) { r.Unreported = true }, false},
		"refused, not told": {func(r *persist.Record) { r.Effect = persist.EffectRefused }, false},
		"refused, and proven": {func(r *persist.Record) {
			r.Effect, r.Told, r.Evidence = persist.EffectRefused, true, &persist.Evidence{}
		}, false},
		"done, and proven":     {func(r *persist.Record) { r.Evidence = &persist.Evidence{} }, true},
		"refused, and told":    {func(r *persist.Record) { r.Effect, r.Told = persist.EffectRefused, true }, true},
		"settled, and told of": {func(r *persist.Record) { r.State, r.Told = persist.StateSettled, true }, false},
	} {
		rec := persist.Record{State: persist.StateConfirmed, Effect: persist.EffectHappened, Answer: &persist.Answer{Status: 200}}
		if c.change(&rec); MayRecall(&rec) != c.want {
			t.Errorf("%s: %t, want %t", name, !c.want, c.want)
		}
	}
}

// TestSendsBefore: an earlier attempt without a record of its send counts as one. (Invariant 24.)
func TestSendsBefore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		doubted        bool
		recorded, want int
	}{{false, 0, 0}, {false, 2, 2}, {true, 0, 1}, {true, 3, 3}} {
		if got := (Given{Doubted: c.doubted}).SendsBefore(c.recorded); got != c.want {
			t.Errorf("doubted %v, %d on record: %d, want %d", c.doubted, c.recorded, got, c.want)
		}
	}
}

// TestErasedOpens: an erased record ends each call that can read it, before any comparison.
func TestErasedOpens(t *testing.T) {
	t.Parallel()
	for state := persist.StateConfirmed; state <= persist.StateAbandoned; state++ {
		rec := persist.Record{State: state, MaybeSent: true, FirstSent: time.Unix(999, 0), Window: 24 * time.Hour, Finished: time.Unix(1000, 0)}
		rec.Effect = rec.FinalEffect()
		rec.Erase(make([]byte, persist.SecretSize))
		op := OpOf(&rec, 0)
		for _, known := range []Knowledge{Incomparable, Same, Other} {
			for _, strange := range []bool{false, true} {
				if got := (Call{Request: known, Strange: strange}).Open(&op); got != SaysErased || got.Tells() {
					t.Errorf("%v: %v", state, got)
				}
			}
		}
		if got := (Call{Unreadable: true}).Open(&op); got != SaysUnreadable {
			t.Errorf("%v, sealed: %v", state, got)
		}
		if got := (Call{Elsewhere: true}).Open(&op); got != SaysElsewhere {
			t.Errorf("%v, of another scope: %v", state, got)
		}
	}
}

// TestTells: which openings tell an end.
func TestTells(t *testing.T) {
	t.Parallel()
	for o := SaysUnreadable; o <= Adopts; o++ {
		want := o == SaysOther || o >= SaysGone && o <= SaysHappened || o == GivesAnswer || o == AsksAgain
		if o.Tells() != want {
			t.Errorf("opening %d: %t", o, o.Tells())
		}
	}
}

// TestSkippedOpens: a call with the key of a placeholder hears of what stands above, whatever its request, and begins nothing if that had no effect.
func TestSkippedOpens(t *testing.T) {
	t.Parallel()
	for _, op := range []Op{{Phase: Phase{State: persist.StateHeld, Standing: Open, Skipped: true}}, {Phase: Phase{State: persist.StateSettled, Standing: Absent, Skipped: true}}} {
		for _, k := range []Knowledge{Same, Other, Incomparable} {
			for _, enqueues := range []bool{false, true} {
				c := Call{Request: k, Enqueues: enqueues}
				if got := c.Open(&op); got != SaysSkipped || got.Tells() {
					t.Errorf("%+v: %v", c, got)
				}
				if c.Replaced = true; c.Open(&op) != SaysReplaced {
					t.Errorf("%+v: %v", c, c.Open(&op))
				}
				if c.Strange = true; c.Open(&op) != SaysStranger {
					t.Errorf("%+v: %v", c, c.Open(&op))
				}
			}
		}
	}
}

// TestRecallOfWhatWasReplaced: nobody gets the answer of a replaced operation without a call.
func TestRecallOfWhatWasReplaced(t *testing.T) {
	t.Parallel()
	rec := persist.Record{State: persist.StateConfirmed, Effect: persist.EffectRefused, Told: true, Answer: &persist.Answer{Status: 402}}
	if !MayRecall(&rec) {
		t.Error("an answer that was told: want true")
	}
	if rec.ReplacedBy = "k:gen=2"; MayRecall(&rec) {
		t.Error("another operation stands in its place: want false")
	}
}
