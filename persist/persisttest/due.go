package persisttest

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// dueCases returns the cases about persist.DueTimes. why says what harm is done by a journal that fails the case. A durable case closes the journal and
// opens it again.
func dueCases() []testCase {
	return []testCase{
		{name: "due/follows", run: dueFollows,
			why: "Run sleeps until what an index says is due next: what is missing there is sent too late"},
		{name: "due/next", run: dueNext,
			why: "an operation that is under way must not hide what falls due after it"},
		{name: "due/reopened", run: dueReopened, durable: true,
			why: "what waited before a restart is due after it, too"},
	}
}

// dueModel holds the journal under test and its expected records. Its cases change both.
type dueModel struct {
	check    *check
	journal  persist.Journal
	random   *rand.Rand
	expected map[string]persist.Record // by key
}

// times returns the result of DueTimes for q that the model expects: the first due time of each origin.
func (d *dueModel) times(q persist.Query) map[string]time.Time {
	want := map[string]time.Time{}
	q.States = []persist.State{persist.StatePending}
	for _, r := range d.expected {
		if at, known := want[r.Origin]; q.Match(&r) && (!known || r.NextAttempt.Before(at)) {
			want[r.Origin] = r.NextAttempt
		}
	}
	return want
}

// step makes one random change, in the journal and in expected: it begins, finishes, forgets, holds or postpones a record (sets another time for its next
// attempt). An ended record stays as it is.
func (d *dueModel) step() {
	key := fmt.Sprint(d.random.IntN(30))
	rec, exists := d.expected[key]
	at := epoch().Add(time.Duration(d.random.IntN(20)) * time.Minute)
	if d.random.IntN(5) == 0 {
		at = time.Time{}
	}
	switch op := d.random.IntN(8); {
	case !exists:
		account := []string{"a", "a|S=1", "b"}[d.random.IntN(3)]
		rec = ofOrigin(account, key, fmt.Sprintf("https://%d.example:443", d.random.IntN(3)), at)
		d.expected[key] = d.check.begin(d.journal, rec)
	case rec.State.Final():
	case op == 0:
		d.check.finish(d.journal, rec)
		rec.State = persist.StateConfirmed
		d.expected[key] = rec
	case op == 1:
		if err := d.journal.Forget(context.Background(), rec); err != nil {
			d.check.fatalf("Forget: %v", err)
		}
		delete(d.expected, key)
	default:
		rec.NextAttempt, rec.State, rec.HoldReason = at, persist.StatePending, ""
		if op == 2 {
			rec.State, rec.HoldReason = persist.StateHeld, persist.HoldStoredError
		}
		d.expected[key] = d.check.update(d.journal, rec)
	}
}

// compare compares the results of DueTimes and of a List of due records with the model. when says, for the error, at which moment.
func (d *dueModel) compare(when string) {
	for _, q := range []persist.Query{{Account: "a"}, {AllAccounts: true}, {Account: "b", Origin: "https://1.example:443"}} {
		if got, want := d.check.dueTimes(d.journal, q), d.times(q); !maps.EqualFunc(got, want, time.Time.Equal) {
			d.check.errorf("%s, DueTimes of account %q, origin %q: %v, want %v", when, q.Account, q.Origin, got, want)
		}
	}
	by := persist.Query{AllAccounts: true, States: []persist.State{persist.StatePending}, DueBy: epoch().Add(5 * time.Minute)}
	var want []string
	for _, r := range d.expected {
		if by.Match(&r) {
			want = append(want, r.Account+" "+r.Key)
		}
	}
	slices.Sort(want)
	if got := slices.Sorted(slices.Values(keys(d.check.list(d.journal, by)))); !slices.Equal(got, want) {
		d.check.errorf("%s, List of what is due gave %q, want %q", when, got, want)
	}
}

// newDueModel makes 150 changes in an empty journal, and compares its due times with the model meanwhile. ok is false for a journal that is no
// persist.DueTimes.
func newDueModel(k *check) (d dueModel, ok bool) {
	d = dueModel{check: k, journal: k.journal(), random: rand.New(rand.NewPCG(1, 2)), expected: map[string]persist.Record{}}
	if _, ok := persist.As[persist.DueTimes](d.journal); !ok {
		return d, false
	}
	for i := range 150 {
		if d.step(); i%15 == 0 {
			d.compare(fmt.Sprintf("after %d changes", i+1))
		}
	}
	return d, true
}

// dueFollows is the case due/follows. DueTimes equals a model after each of many random changes.
func dueFollows(k *check) { _, _ = newDueModel(k) }

// dueReopened is the case due/reopened. DueTimes and List of due records are right after a restart.
func dueReopened(k *check) {
	if d, ok := newDueModel(k); ok {
		d.journal = k.reopen(d.journal)
		d.compare("after it was opened again")
		d.step()
		d.compare("after one more change")
	}
}

// dueNext is the case due/next. A journal without leases also returns Next, the first due time after the moment that the query names (DueBy): a record being
// run must not hide it. A journal with leases (a Claimer) leaves such a record out by itself, and passes. The record of account "a|S=1" is inside "a", and that
// of "b" is not.
func dueNext(k *check) {
	j := k.journal()
	due, ok := persist.As[persist.DueTimes](j)
	if _, claims := k.claimer(j); claims || !ok {
		return
	}
	const one, two, three = "https://one.example:443", "https://two.example:443", "https://three.example:443"
	k.begin(j, ofOrigin("a", "1", one, time.Time{}))
	k.begin(j, ofOrigin("a", "2", one, epoch()))
	k.begin(j, ofOrigin("a", "3", one, epoch().Add(2*time.Second)))
	k.begin(j, ofOrigin("a|S=1", "4", one, epoch().Add(1)))
	k.begin(j, ofOrigin("b", "5", one, epoch().Add(0)))
	k.begin(j, ofOrigin("a", "6", two, epoch()))
	k.begin(j, ofOrigin("a", "7", three, epoch().Add(time.Hour)))
	want := map[string]persist.DueTime{
		one:   {Next: epoch().Add(1)},
		two:   {At: epoch()},
		three: {At: epoch().Add(time.Hour), Next: epoch().Add(time.Hour)},
	}
	all, err := due.DueTimes(context.Background(), persist.Query{Account: "a", DueBy: epoch()})
	if err != nil || len(all) != len(want) {
		k.errorf("DueTimes: %v, error %v; want %v", all, err, want)
	}
	for _, got := range all {
		if w := want[got.Origin]; !got.At.Equal(w.At) || !got.Next.Equal(w.Next) {
			k.errorf("DueTimes of %q: at %v, then %v; want %v and %v", got.Origin, got.At, got.Next, w.At, w.Next)
		}
	}
}
