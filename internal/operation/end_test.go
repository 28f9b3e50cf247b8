package operation

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/persist"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// inDoubt is the history of an attempt whose answer was lost.
func inDoubt() (h classify.History) { h.Doubt(); return h }

// TestChange: attempts count once a server was reached, and passes leave alone what this client alone could not send.
func TestChange(t *testing.T) {
	t.Parallel()
	pass := Given{Pass: true}
	for name, c := range map[string]struct {
		drive  Drive
		while  Meanwhile
		aside  Aside
		counts bool
		answer Keep
	}{
		"sent":                       {flat{write: LeaveOpen, sends: 1, reached: true, given: pass}.drive(), Meanwhile{}, AsideTaken, true, KeepFlawed},
		"not let":                    {flat{write: LeaveOpen, given: pass}.drive(), Meanwhile{}, AsideLeft, false, KeepFlawed},
		"not let, never sent":        {flat{write: LeaveUnsent, given: pass}.drive(), Meanwhile{}, AsideLeft, false, KeepOld},
		"not let, for a caller":      {flat{write: LeaveOpen}.drive(), Meanwhile{}, AsideAsBefore, false, KeepFlawed},
		"not reached":                {flat{write: LeaveOpen, given: pass, unreached: true}.drive(), Meanwhile{}, AsideAsBefore, false, KeepFlawed},
		"given up":                   {flat{write: LeaveOpen, given: pass}.drive(), Meanwhile{GivenUp: true}, AsideAsBefore, false, KeepFlawed},
		"asked for a token":          {flat{write: LeaveOpen, given: pass, reached: true}.drive(), Meanwhile{}, AsideAsBefore, true, KeepFlawed},
		"the clock was set back":     {flat{write: LeaveOpen, given: pass, stop: ClockBack}.drive(), Meanwhile{}, AsideAsBefore, true, KeepFlawed},
		"held":                       {flat{write: LeaveOpen, sends: 1, proof: expired()}.drive(), Meanwhile{}, AsideAsBefore, true, KeepAnswer},
		"held for a caller":          {flat{write: LeaveOpen, sends: 1}.drive(), Meanwhile{Shown: true}, AsideAsBefore, true, KeepAnswer},
		"confirmed":                  {flat{write: EndConfirmed, sends: 1}.drive(), Meanwhile{}, AsideAsBefore, true, KeepAnswer},
		"mismatched":                 {flat{write: EndMismatched, sends: 1}.drive(), Meanwhile{}, AsideAsBefore, true, KeepAnswer},
		"settled as absent, refused": {flat{write: EndAbsent, sends: 1}.drive(), Meanwhile{}, AsideAsBefore, true, KeepNone},
	} {
		d := c.drive
		d.op, d.attempts, d.history = Op{Sending: Sending{Attempts: 4, Sends: 7, MaybeSent: true, FirstSent: noon, Window: time.Hour, Pauses: UsualPauses}}, 2, inDoubt()
		attempts := 4
		if c.counts {
			attempts += 2
		}
		got := d.Change(c.while, noon)
		if got.Aside != c.aside || got.Attempts != attempts || got.Sends != 7+d.sends || got.Answer != c.answer {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestChangeUnmarks: the mark is taken back where nothing can have happened, and only there.
func TestChangeUnmarks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		drive Drive
		want  bool
	}{
		"withdrawn":        {flat{write: LeaveUnsent}.drive(), true},
		"never sent, late": {flat{write: LeaveOpen, proof: expired()}.drive(), true},
		"in doubt, late":   {flat{write: LeaveOpen, proof: expired(), history: inDoubt()}.drive(), false},
		"not sure":         {flat{write: LeaveOpen}.drive(), false},
	} {
		c.drive.op = Op{Sending: Sending{MaybeSent: true, Pauses: UsualPauses}}
		if got := c.drive.Change(Meanwhile{}, noon); got.Unmark != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestChangeTells: who is told what of a generated key. A call tells its caller of the end, and a pass tells nobody.
func TestChangeTells(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		write               Writing
		op                  Op
		given               Given
		while               Meanwhile
		unreported, keyTold bool
	}{
		"a call's":            {EndConfirmed, Op{KeyFacts: KeyFacts{Generated: true}}, Given{Created: true}, Meanwhile{}, false, false},
		"a call's, left":      {EndConfirmed, Op{KeyFacts: KeyFacts{Generated: true}}, Given{Created: true}, Meanwhile{Left: true}, false, true},
		"without its lease":   {EndConfirmed, Op{KeyFacts: KeyFacts{Generated: true}}, Given{Created: true}, Meanwhile{Broken: true}, false, true},
		"another call's":      {EndConfirmed, Op{KeyFacts: KeyFacts{Generated: true}}, Given{}, Meanwhile{}, false, true},
		"a pass's":            {EndConfirmed, Op{KeyFacts: KeyFacts{Generated: true}}, Given{Pass: true}, Meanwhile{}, true, true},
		"a pass's, mismatch":  {EndMismatched, Op{KeyFacts: KeyFacts{Generated: true}}, Given{Pass: true}, Meanwhile{}, false, true},
		"a caller's key":      {EndConfirmed, Op{}, Given{Pass: true}, Meanwhile{Left: true, Broken: true}, false, false},
		"of Config.NewKey":    {EndConfirmed, Op{KeyFacts: KeyFacts{Generated: true, Business: true}}, Given{Created: true}, Meanwhile{}, false, true},
		"settled as absent":   {EndAbsent, Op{KeyFacts: KeyFacts{Generated: true}}, Given{Created: true}, Meanwhile{Left: true}, false, true},
		"named after a field": {EndConfirmed, Op{KeyFacts: KeyFacts{Business: true}}, Given{}, Meanwhile{Left: true}, false, false},
	} {
		d := flat{write: c.write, op: c.op, given: c.given}.drive()
		got := d.Change(c.while, noon)
		if !got.Final || got.Unreported != c.unreported || got.KeyTold != c.keyTold || got.Told == c.given.Pass {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestNotBefore: when the next drive may begin.
func TestNotBefore(t *testing.T) {
	t.Parallel()
	const s, m = time.Second, time.Minute
	after := func(d time.Duration) time.Time { return noon.Add(d) }
	for name, c := range map[string]struct {
		drive   Drive
		givenUp bool
		sent    time.Duration // of the first send, before noon
		want    time.Duration
	}{
		"a usual pause":                  {flat{sends: 1}.drive(), false, 0, 30 * s},
		"worth it later":                 {flat{sends: 1, next: after(m)}.drive(), false, 0, m},
		"worth it sooner":                {flat{sends: 1, next: after(s)}.drive(), false, 0, 30 * s},
		"a long Retry-After":             {flat{sends: 1, stop: LongRetryAfter, next: after(20 * s)}.drive(), false, 0, 20 * s},
		"the origin is down":             {flat{sends: 1, stop: OriginDown, next: after(3 * s)}.drive(), false, 0, 3 * s},
		"the clock was set back":         {flat{stop: ClockBack, next: after(3 * s)}.drive(), false, 0, 3 * s},
		"given up":                       {flat{sends: 1}.drive(), true, 0, 30 * s},
		"given up before a wait":         {flat{sends: 1, next: after(2 * s)}.drive(), true, 0, 2 * s},
		"given up, after many attempts":  {flat{sends: 1, attempts: 60}.drive(), true, 0, 30 * s},
		"nothing reached":                {Drive{}, false, 0, 1},
		"nothing reached, due later":     {flat{op: Op{Sending: Sending{NextAttempt: after(7 * s)}}}.drive(), false, 0, 7 * s},
		"nothing reached, was due":       {flat{op: Op{Sending: Sending{NextAttempt: after(-7 * s)}}}.drive(), false, 0, 1},
		"a token was asked for":          {flat{reached: true}.drive(), false, 0, 30 * s},
		"past the time for sends":        {flat{sends: 1, stop: LongRetryAfter, next: after(24 * time.Hour)}.drive(), false, time.Hour, 23*time.Hour - 90*s + time.Millisecond},
		"at the end of it":               {flat{sends: 1, stop: LongRetryAfter, next: after(23*time.Hour - 90*s + time.Millisecond)}.drive(), false, time.Hour, 23*time.Hour - 90*s + time.Millisecond},
		"not let, with an earlier first": {flat{stop: WindowHere}.drive(), false, 23 * time.Hour, 1},
	} {
		d := c.drive
		d.op.Window, d.op.Pauses = 24*time.Hour, UsualPauses
		d.op.MaybeSent, d.op.FirstSent = true, noon.Add(-c.sent)
		if got := (draft{&d.closing, Meanwhile{GivenUp: c.givenUp}, noon}).notBefore(true).Sub(noon); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	// Never sent, and without a bound for the first send.
	d := flat{op: Op{Sending: Sending{Pauses: UsualPauses}}, sends: 1}.drive()
	if got := (draft{&d.closing, Meanwhile{}, noon}).notBefore(false).Sub(noon); got != 30*s {
		t.Errorf("without a bound: %v", got)
	}
}

// TestMustFlush: a confirmed record may be lost in a crash only where the same key finds the answer again for a while.
func TestMustFlush(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		write             Writing
		stored, protected bool
		age               time.Duration
		want              bool
	}{
		"found again":            {EndConfirmed, true, true, 0, false},
		"at nine tenths":         {EndConfirmed, true, true, 9 * time.Hour, false},
		"past nine tenths":       {EndConfirmed, true, true, 9*time.Hour + 1, true},
		"the clock was set back": {EndConfirmed, true, true, -1, true},
		"not stored":             {EndConfirmed, false, true, 0, true},
		"no key":                 {EndConfirmed, true, false, 0, true},
		"absent":                 {EndAbsent, true, true, 0, true},
	} {
		d := flat{write: c.write, proof: Proof{Stored: c.stored}, op: Op{KeyFacts: KeyFacts{Protected: c.protected}, Sending: Sending{FirstSent: noon, Window: 10 * time.Hour}}}.drive()
		if got := d.mustFlush(noon.Add(c.age)); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestMayAnswerFirst: a call has its answer before the record only where a crash in between loses nothing.
func TestMayAnswerFirst(t *testing.T) {
	t.Parallel()
	may := flat{
		step: Write, write: EndConfirmed, given: Given{Late: true}, proof: Proof{Stored: true},
		op: Op{KeyFacts: KeyFacts{Protected: true}, Sending: Sending{FirstSent: noon, Window: time.Hour}},
	}.drive()
	if !may.MayAnswerFirst(noon) {
		t.Error("not a stored success")
	}
	for name, change := range map[string]func(*Drive){
		"another step":    func(d *Drive) { d.step = Flush },
		"another writing": func(d *Drive) { d.write = EndMismatched },
		"not asked for":   func(d *Drive) { d.given.Late = false },
		"a pass":          func(d *Drive) { d.given.Pass = true },
		"not stored":      func(d *Drive) { d.proof.Stored = false },
	} {
		d := may
		if change(&d); d.MayAnswerFirst(noon) {
			t.Errorf("%s: answers first", name)
		}
	}
}

// TestMayChange: only a 4xx that the server does not keep may be another one next time.
func TestMayChange(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]bool{201: false, 303: false, 399: false, 400: true, 499: true, 500: false} {
		for _, stored := range []bool{true, false} {
			d := flat{answer: Answer{1, status}, proof: Proof{Stored: stored}, op: Op{KeyFacts: KeyFacts{Protected: true}}}.drive()
			if got := d.mayChange(); got != (want && !stored) {
				t.Errorf("%d, stored %t: %t", status, stored, got)
			}
		}
	}
}

// TestMayShow: a caller of plain HTTP never sees a claim that is not proved.
func TestMayShow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		before bool
		kind   Kind
		want   bool
	}{
		{0, false, ProvesNothing, false},
		{200, false, ProvesNothing, false},
		{299, false, ProvesNothing, false},
		{300, false, ProvesNothing, false},
		{399, false, ProvesNothing, false},
		{400, false, ProvesNothing, true},
		{408, false, ProvesNothing, true},
		{408, true, ProvesNothing, false},
		{401, false, ProvesRefusal, false},
		{409, true, ProvesInFlight, true},
		{499, true, ProvesNothing, false},
		{500, true, ProvesNothing, true},
	} {
		d := flat{answer: Answer{1, c.status}, doubtBefore: c.before, proof: Proof{Kind: c.kind}}.drive()
		if got := d.mayShow(); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// TestReportDue: an error says when it is worth going on, or leaves that to the record.
func TestReportDue(t *testing.T) {
	t.Parallel()
	next := noon.Add(time.Minute)
	for name, c := range map[string]struct {
		standing Standing
		answer   int // its ID
		hold     persist.HoldReason
		want     Report
	}{
		"pending":             {Open, 1, "", Report{AsRecorded: true}},
		"unclear":             {Unclear, 1, "", Report{AsRecorded: true}},
		"held":                {Open, 1, persist.HoldExpired, Report{}},
		"gone, refused":       {None, 1, "", Report{Due: next, MayShow: true}},
		"gone, not sent":      {None, 0, "", Report{MayShow: true}},
		"of another's":        {Ended, 1, "", Report{Due: next, MayShow: true}},
		"confirmed elsewhere": {Succeeded, 0, "", Report{}},
	} {
		d := flat{answer: Answer{ID: c.answer}, proof: Proof{Hold: c.hold}, next: next}.drive()
		d.fail(c.standing)
		c.want.Standing = c.standing
		if got := d.Report(); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestRepeatReports: a repeat reports what the record says, and shows no answer that is not the operation's.
func TestRepeatReports(t *testing.T) {
	t.Parallel()
	op := Op{Phase: Phase{State: persist.StateConfirmed, Standing: Succeeded}, Recorded: Recorded{Status: 201}, Unreported: true}
	for status, want := range map[int]Report{
		200: {Answered: true, Unreported: true},
		299: {Answered: true, Unreported: true},
		300: {Standing: Succeeded, Why: [2]Trouble{AnswerGone}, Unreported: true, Due: noon},
		500: {Standing: Succeeded, Why: [2]Trouble{AnswerGone}, Unreported: true, Due: noon},
	} {
		d := flat{op: op, answer: Answer{1, status}, proof: Proof{Kind: ProvesEnd}, next: noon}.drive()
		d.concludeRepeat()
		if got := d.Report(); got != want || d.Step() != Over {
			t.Errorf("%d: %+v, want %+v", status, got, want)
		}
	}
}

func TestSameEnd(t *testing.T) {
	t.Parallel()
	for c, want := range map[[2]int]bool{
		{201, 201}: true, {201, 200}: true, {299, 300}: false, {300, 299}: false, {303, 303}: true, {201, 404}: false, {404, 201}: false, {402, 402}: true,
	} {
		if got := sameEnd(c[0], c[1]); got != want {
			t.Errorf("%v: %t", c, got)
		}
	}
}

// TestEndedBy: a recorded answer that can be read now ends the operation, in doubt as it was.
func TestEndedBy(t *testing.T) {
	t.Parallel()
	op := Op{Phase: Phase{State: persist.StateHeld, Hold: persist.HoldUnread}, KeyFacts: KeyFacts{Protected: true}, Sending: Sending{MaybeSent: true, FirstSent: noon, Window: time.Hour}}
	d := EndedBy(op, Client{}, Given{}, classify.Verdict{Kind: classify.KindFinal, Stored: true}, Answer{1, 200})
	if d.Step() != Write || d.Writing() != EndConfirmed || d.Answer().Status != 200 || !d.InDoubt() {
		t.Fatalf("%+v", d)
	}
	if d.Written(true, noon); d.Step() != Over || !d.Report().Answered {
		t.Errorf("%+v", d)
	}
}

// TestChangeOwes: a call has the grace to hand its end over, a pass the time of its own OnResult; what a caller has taken is owed to nobody.
func TestChangeOwes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pass  bool
		while Meanwhile
		want  time.Time
	}{
		"a call's":         {false, Meanwhile{Delivers: time.Second}, noon.Add(ResultGrace)},
		"a call's, taken":  {false, Meanwhile{Taken: true}, time.Time{}},
		"a pass's":         {true, Meanwhile{Delivers: time.Second}, noon.Add(time.Second)},
		"a pass's, nobody": {true, Meanwhile{}, noon},
	} {
		d := flat{write: EndConfirmed, op: Op{Results: true}, given: Given{Pass: c.pass}}.drive()
		if got := d.Change(c.while, noon).OwedFrom; !got.Equal(c.want) {
			t.Errorf("%s: owed from %v, want %v", name, got, c.want)
		}
	}
}

// TestFreed: a key is free only if nothing speaks against it; of a begin since then the outcome is unknown.
func TestFreed(t *testing.T) {
	t.Parallel()
	free := Freed{Forgotten: true, Gone: true}
	for name, c := range map[string]struct {
		freed Freed
		want  bool
	}{
		"forgotten, and nothing there": {free, true},
		"not forgotten":                {Freed{Gone: true}, false},
		"another record":               {Freed{Forgotten: true}, false},
		"begun in this process":        {Freed{Forgotten: true, Gone: true, Begun: true}, false},
		"a lost begin":                 {Freed{Forgotten: true, Gone: true, MayAppear: true}, false},
	} {
		if got := c.freed.IsFree(); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
	if r := BegunSince(); r.Standing != Unclear || r.Answered || r.MayShow || Judge(r.Standing, Same) != Unknown {
		t.Errorf("begun since: %+v", r)
	}
}
