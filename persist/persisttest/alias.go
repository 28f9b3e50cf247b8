package persisttest

import (
	"context"
	"fmt"

	"github.com/oncehttp/oncehttp/persist"
)

// aliasCases returns the cases about memory shared between the journal and its callers. why says what harm is done by a journal that fails the case.
func aliasCases() []testCase {
	return []testCase{
		{name: "alias/given", run: aliasGiven,
			why: "a caller may use its buffers again"},
		{name: "alias/returned", run: aliasReturned,
			why: "one caller's edits must not reach another, nor the disk"},
		{name: "alias/untouched", run: aliasUntouched,
			why: "what a caller gives is the caller's, and must not be edited"},
	}
}

// scribble overwrites the contents of the record's slices and maps, as a caller that uses its buffers again. It writes up to the capacity of the bodies. A
// record with an answer must have a header in it.
func scribble(r *persist.Record) {
	spoil := func(b []byte) {
		for i := range b {
			b[i] ^= 0xff
		}
	}
	spoil(r.Body[:cap(r.Body)])
	spoil(r.Fingerprint)
	for _, texts := range [][]string{r.Omitted, r.DropAnswer} {
		for i := range texts {
			texts[i] = "scribbled"
		}
	}
	clear(r.Credentials)
	clear(r.Scopes)
	clear(r.History)
	clear(r.Acts)
	for i := range r.KeptFields {
		r.KeptFields[i] = persist.KeptField{Pointer: "/scribbled", Value: "scribbled"}
	}
	for name, values := range r.Header {
		for i := range values {
			values[i] = "scribbled"
		}
		delete(r.Header, name)
	}
	if r.Header != nil {
		r.Header["X-Scribbled"] = []string{"1"}
	}
	if e := r.Evidence; e != nil {
		*e = persist.Evidence{Type: "scribbled"}
	}
	if a := r.Answer; a != nil {
		spoil(a.Body[:cap(a.Body)])
		for _, values := range a.Header {
			for i := range values {
				values[i] = "scribbled"
			}
		}
		a.Header["X-Scribbled"] = []string{"1"}
		*a = persist.Answer{Status: 999, Header: a.Header, Body: a.Body}
	}
}

// sizes returns sizes of bodies, in bytes; journals may store each of them in another way (beside the record, in a file, in parts).
func sizes() []int { return []int{10, 5000, 100_000} }

// aliasGiven is the case alias/given. Begin, Update and Finish copy the given record; a caller may change it (scribble) afterwards.
func aliasGiven(k *check) {
	ctx, j := context.Background(), k.journal()
	for _, size := range sizes() {
		given := fullest("a", fmt.Sprint(size))
		given.Body = patterned(size, 1)
		want := given.Clone()
		got := k.begin(j, given)
		want.Seq, want.Revision = got.Seq, 1
		scribble(&given)
		k.holds(j, want, "the record given to Begin was written over")

		given = changed(want.Clone())
		given.Answer.Body = patterned(size, 2)
		want = given.Clone()
		k.update(j, given)
		want.Revision++
		scribble(&given)
		k.holds(j, want, "the record given to Update was written over")

		given = finished(want.Clone())
		given.Answer.Body = patterned(size, 3)
		want = given.Clone()
		if err := j.Finish(ctx, given); err != nil {
			k.fatalf("Finish: %v", err)
		}
		want.Revision++
		scribble(&given)
		k.holds(j, want, "the record given to Finish was written over")
	}
}

// aliasReturned is the case alias/returned. The records from Get, Begin, List and Update are copies; changing one changes nothing in the journal. Each is read
// twice, since a journal may give out its own copy only the first time.
func aliasReturned(k *check) {
	ctx, j := context.Background(), k.journal()
	for _, size := range sizes() {
		r := fullest("a", fmt.Sprint(size))
		r.Body = patterned(size, 1)
		want := k.begin(j, r.Clone())
		want = want.Clone()
		for range 2 {
			got, err := j.Get(ctx, r.ID)
			if err != nil {
				k.fatalf("Get: %v", err)
			}
			scribble(&got)
			k.holds(j, want, "what Get returned was written over")
			got, _, err = j.Begin(ctx, r)
			if err != nil {
				k.fatalf("Begin: %v", err)
			}
			scribble(&got)
			k.holds(j, want, "what Begin returned was written over")
			for got := range j.List(ctx, persist.Query{Account: "a", Key: r.Key}) {
				scribble(&got)
			}
			k.holds(j, want, "what List returned was written over")
		}
		updated := changed(want.Clone())
		got := k.update(j, updated)
		want = got.Clone()
		scribble(&got)
		k.holds(j, want, "what Update returned was written over")
	}
}

// aliasUntouched is the case alias/untouched. No method changes the record it is given; before is a copy from before the call.
func aliasUntouched(k *check) {
	ctx, j := context.Background(), k.journal()
	given := fullest("a", "k")
	before := given.Clone()
	unchanged := func(method string) {
		if d := diff(given, before); d != "" {
			k.errorf("%s changed the record that it was given: %s", method, d)
		}
	}
	begun := k.begin(j, given)
	unchanged("Begin")
	given = changed(begun)
	before = given.Clone()
	updated := k.update(j, given)
	unchanged("Update")
	given = finished(updated)
	before = given.Clone()
	if err := j.Finish(ctx, given); err != nil {
		k.fatalf("Finish: %v", err)
	}
	unchanged("Finish")
	k.sweep(j, persist.Limits{Prune: true, KeepAnswer: -1, Now: done()}, 1)
	unchanged("Sweep")
}
