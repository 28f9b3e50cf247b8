package guests_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// row is a value of each dimension, as a text.
type row [5]string

// dims are what a cell is made of.
func (c *cell) dims() row {
	return row{c.name, c.call + " of " + string(c.key), c.way.String(), c.end, c.journal}
}

// pairs are the pairs of values of a cell.
func (r row) pairs() (all [][4]string) {
	for i := range r {
		for k := i + 1; k < len(r); k++ {
			all = append(all, [4]string{string(rune('0' + i)), r[i], string(rune('0' + k)), r[k]})
		}
	}
	return all
}

// cells are all cells of the matrix, in an order that is always the same.
func cells() (all []*cell) {
	rows, calls := places(), asks()
	for p, name := range slices.Sorted(maps.Keys(rows)) {
		for a, call := range slices.Sorted(maps.Keys(calls)) {
			keys := []oncehttp.Key{""}
			if calls[call].keyed {
				keys = []oncehttp.Key{"payment", "other"}
			}
			for k, key := range keys {
				for n := range len(ways) * len(ends) * 2 {
					n = (n + 7*p + 5*(2*a+k)) % (len(ways) * len(ends) * 2)
					c := &cell{
						name: name, place: rows[name], call: call, ask: calls[call], key: key,
						way: ways[n%len(ways)], end: ends[n/len(ways)%len(ends)], journal: []string{"memory", "bolt"}[n/len(ways)/len(ends)],
					}
					if c.possible() {
						all = append(all, c)
					}
				}
			}
		}
	}
	return all
}

// sample are cells that have each pair at least once.
func sample(all []*cell) (some []*cell) {
	seen := map[[4]string]bool{}
	for _, c := range all {
		pairs := c.dims().pairs()
		if slices.ContainsFunc(pairs, func(pair [4]string) bool { return !seen[pair] }) {
			some = append(some, c)
			for _, pair := range pairs {
				seen[pair] = true
			}
		}
	}
	return some
}

// exception says why a place must not make this call; empty: it may.
func (c *cell) exception() string {
	waits := c.way.background && (!c.way.goroutine || c.way.waits)
	if c.place.journal && waits && c.ask.joins && c.key != "other" {
		return "a journal must not wait for its own operation but with the context that it got: see Config.Journal"
	}
	if c.ask.sent && (c.journal == "bolt" || c.name != "Config.Authorize on a worker" && c.name != "Config.Token on a worker") {
		return "no Run is under way, its pass has begun before, or the turn is not lent on"
	}
	left := c.way.goroutine && !c.way.waits
	if c.ask.fresh && c.name == "Config.NewKey" {
		return "it makes the key of whatever has none: TestNewKeyAsksForItself of the root"
	}
	if c.ask.fresh && left && !c.way.background {
		return "its context ends with the attempt, and its operation then is nobody's"
	}
	if c.ask.sent && left && !c.way.background {
		return "its context ends with the attempt"
	}
	if c.name == "persist.Journal.Assign" && c.ask.sends && c.key == "payment" && left {
		return "once it is another account's, the key is free, and a call without an account is another payment"
	}
	if c.name == "persist.Claimer.Now" && (!c.way.goroutine || c.way.waits) {
		return "every call needs the time that it is being asked for: see Config.Journal"
	}
	return ""
}

// profile is the one that the operation was begun under.
func (c *cell) profile() *profile.Profile {
	switch {
	case c.name == "Config.ProfileOf":
		return otherProfile()
	case strings.HasPrefix(c.name, "Config.Token"):
		return tokenProfile()
	}
	return nil
}

// token is Config.Token for that profile.
func (c *cell) token() func(context.Context, persist.Record) (string, error) {
	if !strings.HasPrefix(c.name, "Config.Token") {
		return nil
	}
	return func(_ context.Context, rec persist.Record) (string, error) { return rec.Key, nil }
}

// TestGuests: every function of a user, in the middle of an operation, makes every call. All of it is over within 5 s, nothing is
// left, each key is sent once, and what the call and the operation are told is true.
func TestGuests(t *testing.T) {
	t.Parallel()
	run := cells()
	if !*whole {
		run = testrun.Some(sample(run), 8)
	}
	t.Logf("%d of %d cells", len(run), len(cells()))
	for _, c := range run {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			c.run(t)
		})
	}
}
