package persisttest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// needsCases returns the cases about Record.Needs, the requirements on a client that acts on a record. why says what harm is done by a journal that fails
// the case.
func needsCases() []testCase {
	return []testCase{
		{name: "needs/query", run: needsQuery,
			why: "what a client cannot act on is told by its needs, with how many there are"},
		{name: "needs/claim", run: needsClaim,
			why: "a worker that takes what it cannot act on keeps it from those who can"},
		{name: "needs/due", run: needsDue,
			why: "a worker claims only where something waits that it can act on"},
		{name: "needs/renewed", run: needsRenewed,
			why: "a record that is sealed anew needs another key from then on"},
	}
}

const (
	needsOne = "https://one.example:443"
	needsTwo = "https://two.example:443"
)

// needy begins records of two origins with different needs (the requirements on a client that sends them, such as a region). It returns them by the text of
// their needs. Each record is due a minute after the one before.
func needy(k *check, j persist.Journal) map[string][]persist.Record {
	all := map[string][]persist.Record{}
	for i, c := range []struct {
		key, origin string
		change      func(*persist.Record)
	}{
		{"1", needsOne, func(*persist.Record) {}},
		{"2", needsOne, func(r *persist.Record) { r.Omitted = []string{"Authorization"} }},
		{"3", needsOne, func(r *persist.Record) { r.Region = "eu" }},
		{"4", needsOne, func(*persist.Record) {}},
		{"5", needsTwo, func(r *persist.Record) { r.Profile = "another" }},
		{"6", needsTwo, func(r *persist.Record) { r.Credential = "sha256:ab" }},
		{"7", needsTwo, func(r *persist.Record) { r.Region = "eu" }},
		{"8", needsOne, func(r *persist.Record) { r.Region = "eu" }},
	} {
		r := ofOrigin("a", c.key, c.origin, epoch().Add(time.Duration(i)*time.Minute))
		c.change(&r)
		r = k.begin(j, r)
		all[r.Needs().String()] = append(all[r.Needs().String()], r)
	}
	return all
}

// keysOf returns the keys of records, in order.
func keysOf(records []persist.Record) (all []string) {
	for _, r := range records {
		all = append(all, r.Key)
	}
	slices.Sort(all)
	return all
}

// needsQuery is the case needs/query. A query with needs (the requirements on a client) selects records with exactly these needs; those of a later version's
// format are none.
func needsQuery(k *check) {
	j := k.journal()
	for needs, want := range needy(k, j) {
		if got := keysOf(k.list(j, persist.Query{Account: "a", Needs: needs})); !slices.Equal(got, keysOf(want)) {
			k.errorf("List of what needs %q gave %q, want %q", needs, got, keysOf(want))
		}
	}
	if none := k.list(j, persist.Query{Account: "a", Needs: "2 of a later version"}); len(none) > 0 {
		k.errorf("List of what nothing needs gave %q", keysOf(none))
	}
}

// needsClaim is the case needs/claim. Claim with needs (the requirements on a client) takes records with exactly these needs only: a worker must not take what
// it cannot send. Every second claim asks for one origin, too.
func needsClaim(k *check) {
	j := k.journal()
	c, ok := k.claimer(j)
	if !ok {
		return
	}
	all := needy(k, j)
	texts := slices.Sorted(maps.Keys(all))
	for i, needs := range texts {
		q := persist.Query{Account: "a", Needs: needs}
		want := keysOf(all[needs])
		if i%2 == 0 { // of one origin
			q.Origin = all[needs][0].Origin
			want = keysOf(slices.DeleteFunc(slices.Clone(all[needs]), func(r persist.Record) bool { return r.Origin != q.Origin }))
		}
		got, _ := k.claim(c, q, "w", time.Minute, 20)
		if !slices.Equal(keysOf(got), want) {
			k.errorf("Claim of what needs %q, of origin %q, took %q, want %q", needs, q.Origin, keysOf(got), want)
		}
	}
	if none, _ := k.claim(c, persist.Query{Account: "a", Needs: "2 of a later version"}, "w", time.Minute, 20); len(none) > 0 {
		k.errorf("Claim of what nothing needs took %q", keysOf(none))
	}
}

// needsGroup is a DueTime without its times. The keys of a seal are left out of needs.
type needsGroup struct{ origin, needs string }

// dueGroups returns the result of DueTimes as a map: the first due time of each group, an origin with needs (the requirements on a client). A group named twice
// is a failure. The needs are those that a journal in clear would name.
func (k *check) dueGroups(j persist.Journal, q persist.Query) map[needsGroup]time.Time {
	d, _ := persist.As[persist.DueTimes](j)
	all, err := d.DueTimes(context.Background(), q)
	if err != nil {
		k.errorf("DueTimes: %v", err)
	}
	groups := map[needsGroup]time.Time{}
	for _, t := range all {
		g := needsGroup{t.Origin, t.Needs}
		if n := persist.ParseNeeds(t.Needs); n.Hidden == "" && n.Format == persist.Format {
			n.SealKeys = "" // a journal that seals (encrypts) records adds the names of its keys
			g.needs = n.String()
		}
		if _, twice := groups[g]; twice {
			k.errorf("DueTimes names %v twice", g)
		}
		groups[g] = t.At
	}
	return groups
}

// needsDue is the case needs/due. DueTimes returns the first due time for each origin and needs (the requirements on a client). A journal without claims may
// leave the needs out.
func needsDue(k *check) {
	j := k.journal()
	if _, ok := persist.As[persist.DueTimes](j); !ok {
		return
	}
	want := map[needsGroup]time.Time{}
	for needs, records := range needy(k, j) {
		for _, r := range records {
			g := needsGroup{r.Origin, needs}
			if at, known := want[g]; !known || r.NextAttempt.Before(at) {
				want[g] = r.NextAttempt
			}
		}
	}
	got := k.dueGroups(j, persist.Query{Account: "a"})
	if _, claims := k.claimer(j); !claims && allEmpty(got) {
		return // needs matter only to claims, and it has none
	}
	if !maps.EqualFunc(got, want, time.Time.Equal) {
		k.errorf("DueTimes: %v, want %v", got, want)
	}
}

// allEmpty reports whether no group has needs: then the journal leaves them out of DueTimes, as one without claims may.
func allEmpty(groups map[needsGroup]time.Time) bool {
	for g := range groups {
		if g.needs != "" {
			return false
		}
	}
	return true
}

// needsRenewed is a case about sealed (encrypted) records: their needs name the keys to read them, and change with an Update by another key. Queries and
// claims must then go by the new needs. A journal that seals records itself refuses an already sealed record (ErrInvalid), and passes. No record has the needs
// from before, one has those after.
func needsRenewed(k *check) {
	j := k.journal()
	const before, after = "1 seal=a hidden=AAAA", "1 seal=a+b hidden=BBBB"
	r := ofOrigin("a", "1", needsOne, epoch())
	r.Carrier, r.CarrierName, r.SealedNeeds = persist.CarrierSealed, "a", before
	r, _, err := j.Begin(context.Background(), r)
	if errors.Is(err, persist.ErrInvalid) {
		return
	}
	if err != nil {
		k.fatalf("Begin: %v", err)
	}
	r.SealedNeeds = after
	r = k.update(j, r)
	k.holds(j, r, "Update")
	for n, needs := range []string{before, after} { // in this order: a claim of the second takes the record
		if got := k.list(j, persist.Query{Account: "a", Needs: needs}); len(got) != n {
			k.errorf("List of what needs %q gave %d records, want %d", needs, len(got), n)
		}
		if _, ok := persist.As[persist.DueTimes](j); ok {
			groups := k.dueGroups(j, persist.Query{Account: "a"})
			if _, there := groups[needsGroup{needsOne, needs}]; there != (n == 1) && !allEmpty(groups) {
				k.errorf("DueTimes after the change: %v", groups)
			}
		}
		if c, ok := k.claimer(j); ok {
			if got, _ := k.claim(c, persist.Query{Account: "a", Origin: needsOne, Needs: needs}, "w", time.Minute, 5); len(got) != n {
				k.errorf("Claim of what needs %q took %d records, want %d", needs, len(got), n)
			}
		}
	}
}
