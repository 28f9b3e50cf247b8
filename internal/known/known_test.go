package known

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

var errAway = errors.New("away")

// made is a record under a generated key, of a request with this body.
func made(key, body string) *persist.Record {
	return &persist.Record{
		ID: persist.ID{Account: "a", Key: key}, Generated: true, Origin: "https://h:443", Method: "POST", Target: "/p?q=1",
		Recipe: "v1", Fingerprint: []byte(body), Credentials: []persist.Credential{{Name: "Authorization", Digest: "1:2"}},
	}
}

// by returns the fingerprint of a request with this body by the recipe v1, the only one that it knows.
func by(body string) func(string) ([]byte, bool) {
	return func(recipe string) ([]byte, bool) { return []byte(body), recipe == "v1" }
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// TestLikeAndMayAppear: a lost record stands in the way of the same request, and of its own key, until the journal shows it or its
// time has come.
func TestLikeAndMayAppear(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]struct {
		rec   func(*persist.Record)
		asked *persist.Record
		body  string // of the request
		found bool
	}{
		"the same":                         {asked: made("k2", ""), body: "x", found: true},
		"its own key":                      {asked: made("k", ""), body: "x"},
		"another body":                     {asked: made("k2", ""), body: "y"},
		"another account":                  {rec: func(rec *persist.Record) { rec.Account = "b" }, asked: made("k2", ""), body: "x"},
		"a chosen key":                     {rec: func(rec *persist.Record) { rec.Generated = false }, asked: made("k2", ""), body: "x"},
		"a recipe that is not known":       {rec: func(rec *persist.Record) { rec.Recipe = "v2" }, asked: made("k2", ""), body: "y", found: true},
		"that and another query":           {rec: func(rec *persist.Record) { rec.Recipe, rec.Target = "v2", "/p" }, asked: made("k2", ""), body: "y", found: true},
		"that and another path":            {rec: func(rec *persist.Record) { rec.Recipe, rec.Target = "v2", "/q?q=1" }, asked: made("k2", ""), body: "x"},
		"that and another origin":          {rec: func(rec *persist.Record) { rec.Recipe, rec.Origin = "v2", "https://i:443" }, asked: made("k2", ""), body: "x"},
		"that and another method":          {rec: func(rec *persist.Record) { rec.Recipe, rec.Method = "v2", "PUT" }, asked: made("k2", ""), body: "x"},
		"an older recipe that is not ours": {rec: func(rec *persist.Record) { rec.Recipe = "v0" }, asked: made("k", ""), body: "x"},
	} {
		var n Notes
		rec := made("k", "x")
		if r.rec != nil {
			r.rec(rec)
		}
		like := func(now time.Time) bool {
			like, found := n.Like("a", r.asked, now, by(r.body))
			if found && (like.ID != rec.ID || !like.Generated || !slices.Equal(like.Credentials, rec.Credentials)) {
				t.Errorf("%s: found %+v", name, like)
			}
			return found
		}
		for range 2 { // noted twice, it is one note
			n.Lost(rec, epoch)
		}
		if like(epoch) != r.found || !n.MayAppear(rec.ID, epoch) || n.MayAppear(persist.ID{Account: "a", Key: "k2"}, epoch) {
			t.Errorf("%s: found %v, want %v; it may appear %v", name, like(epoch), r.found, n.MayAppear(rec.ID, epoch))
		}
		if late := epoch.Add(1); like(late) || n.MayAppear(rec.ID, late) {
			t.Errorf("%s: it is there after its time", name)
		}
		n.Lost(rec, epoch)
		if n.Shown(rec.ID); like(epoch) || n.MayAppear(rec.ID, epoch) {
			t.Errorf("%s: it is there although the journal shows it", name)
		}
		if left := len(n.lost) + len(n.same) + len(n.alike) + len(n.recipes); left != 0 {
			t.Errorf("%s: %d entries are left", name, left)
		}
	}
}

// TestLook: what the journal shows, and what has come to its time, ends; what it does not know stays, and an error ends the look.
func TestLook(t *testing.T) {
	t.Parallel()
	final, open := persist.Record{State: persist.StateSettled}, persist.Record{}
	for name, r := range map[string]struct {
		rec           persist.Record
		err           error
		late          bool
		lost, answers int // left of two each
		fails         bool
	}{
		"pending":         {rec: open, lost: 0, answers: 2},
		"final":           {rec: final},
		"gone":            {err: fmt.Errorf("%w: k", persist.ErrNotFound), lost: 2},
		"damaged":         {err: persist.ErrCorrupt, answers: 2},
		"no answer":       {err: errAway, lost: 2, answers: 2, fails: true},
		"late, no answer": {err: errAway, late: true},
	} {
		var n Notes
		asked := 0
		for _, key := range []string{"k", "l"} {
			n.Lost(made(key, "x"), epoch)
			n.Unrecorded(made(key, "x").ID, errAway, epoch)
		}
		now := epoch
		if r.late {
			now = now.Add(1)
		}
		err := n.Look(now, 10, func(persist.ID) (persist.Record, error) { asked++; return r.rec, r.err })
		if left, _, _ := n.Answers(); len(n.lost) != r.lost || left != r.answers || (err != nil) != r.fails {
			t.Errorf("%s: %d lost and %d answers are left, %v", name, len(n.lost), left, err)
		}
		if r.fails && asked != 1 {
			t.Errorf("%s: asked %d times", name, asked)
		}
	}
}

// TestBound: with as many notes as there may be, nothing without one is begun, whatever they are of.
func TestBound(t *testing.T) {
	t.Parallel()
	for _, most := range []int{Most, 4} {
		n := Notes{}
		if most != Most {
			n.Most = most
		}
		id := func(i int) persist.ID { return persist.ID{Key: fmt.Sprint(i)} }
		for i := range most {
			if n.Full(id(most)) {
				t.Fatalf("full at %d of %d", i, most)
			}
			if i%2 == 0 {
				n.Lost(&persist.Record{ID: id(i)}, epoch)
			} else {
				n.Unrecorded(id(i), errAway, epoch)
			}
		}
		if !n.Full(id(most)) || n.Full(id(0)) {
			t.Errorf("at %d: full %v, for one that is noted %v", most, n.Full(id(most)), n.Full(id(0)))
		}
		n.Recorded(id(1))
		if n.Full(id(most)) {
			t.Errorf("full with one of %d less", most)
		}
	}
}

// TestCostOfACall: however many notes there are, a caller's request is fingerprinted once for each recipe, and a look is as long as
// it is asked to be.
func TestCostOfACall(t *testing.T) {
	t.Parallel()
	var n Notes
	const notes = 5_000
	for i := range notes {
		n.Lost(made(fmt.Sprint(i), fmt.Sprint(i)), epoch)
	}
	sums, asked := 0, 0
	if _, found := n.Like("a", made("new", ""), epoch, func(string) ([]byte, bool) { sums++; return []byte("new"), true }); found || sums != 1 {
		t.Errorf("found %v after %d fingerprints", found, sums)
	}
	if err := n.Look(epoch, 8, func(persist.ID) (persist.Record, error) { asked++; return persist.Record{}, nil }); err != nil || asked != 8 || len(n.lost) != notes-8 {
		t.Errorf("%v, asked %d times, %d are left", err, asked, len(n.lost))
	}
}

// TestAnswers: the first by key, with its cause.
func TestAnswers(t *testing.T) {
	t.Parallel()
	var n Notes
	if count, _, cause := n.Answers(); count != 0 || cause != nil {
		t.Errorf("%d, %v of none", count, cause)
	}
	for _, key := range []string{"c", "a", "b"} {
		n.Unrecorded(persist.ID{Key: key}, errors.New(key), epoch)
	}
	if count, first, cause := n.Answers(); count != 3 || first.Key != "a" || cause.Error() != "a" {
		t.Errorf("%d, %v: %v", count, first, cause)
	}
}

// TestWatch: a Begin that is under way, or has made a record, during a watch counts; one that failed does not, nor one of another key.
func TestWatch(t *testing.T) {
	t.Parallel()
	id, other := persist.ID{Key: "k"}, persist.ID{Key: "l"}
	for name, r := range map[string]struct {
		before, during func(*Begins)
		want           bool
	}{
		"nothing":       {},
		"over before":   {before: func(b *Begins) { b.Enter(id); b.Leave(id, true) }},
		"under way":     {before: func(b *Begins) { b.Enter(id) }, want: true},
		"ended in it":   {before: func(b *Begins) { b.Enter(id) }, during: func(b *Begins) { b.Leave(id, true) }, want: true},
		"failed in it":  {before: func(b *Begins) { b.Enter(id) }, during: func(b *Begins) { b.Leave(id, false) }},
		"began in it":   {during: func(b *Begins) { b.Enter(id) }, want: true},
		"all of it":     {during: func(b *Begins) { b.Enter(id); b.Leave(id, true) }, want: true},
		"another":       {during: func(b *Begins) { b.Enter(other) }},
		"another watch": {during: func(b *Begins) { b.Watch(id).End() }},
	} {
		var b Begins
		if r.before != nil {
			r.before(&b)
		}
		w := b.Watch(id)
		if r.during != nil {
			r.during(&b)
		}
		if got := w.End(); got != r.want {
			t.Errorf("%s: %v, want %v", name, got, r.want)
		}
	}
	var b Begins
	w := b.Watch(id)
	b.Enter(id)
	b.Leave(id, true)
	if w.End(); len(b.now) != 0 {
		t.Errorf("%d are left", len(b.now))
	}
}

// TestLostTwice: of two lost Begins of one operation either may be the one that appears. The later of their times counts, in whatever order they were lost.
func TestLostTwice(t *testing.T) {
	t.Parallel()
	early, late := epoch.Add(time.Hour), epoch.Add(24*time.Hour)
	for _, times := range [][2]time.Time{{early, late}, {late, early}} {
		var n Notes
		rec := made("k", "x")
		n.Lost(rec, times[0])
		n.Lost(rec, times[1])
		if !n.MayAppear(rec.ID, late) || n.MayAppear(rec.ID, late.Add(1)) {
			t.Errorf("lost until %v and %v: want it noted until %v, and no longer", times[0], times[1], late)
		}
	}
}
