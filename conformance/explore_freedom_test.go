package conformance_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/conformance"
)

// searchFree searches a sample that compares what covers makes of a request, and is right otherwise.
func searchFree(t *testing.T, covers func(c *call, parts []string) []string) *conformance.Report {
	_, url := newSample(t, choices{updates: true}, quirk{covers: covers})
	o := explored(sampleOptions(url), 60)
	o.Profile, o.Run = choices{updates: true}.declare(), []string{"explore/query", "explore/repeat", "explore/chunked"}
	return run(t, o)
}

// withoutQuery leaves the query out of what is compared.
func withoutQuery(parts []string) []string { return []string{parts[0], parts[1], "", parts[3]} }

// A server that takes a request with a query for the same one, and for another one if it comes in chunks, is warned of. One that
// always does the same is not, and is told what that is.
func TestExploreFreedoms(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T) {
		mixed := searchFree(t, func(c *call, parts []string) []string {
			if len(c.r.TransferEncoding) > 0 {
				return parts
			}
			return withoutQuery(parts)
		})
		if got, want := faults(mixed), []string{"explore/chunked-and-query"}; !slices.Equal(got, want) {
			t.Fatalf("got findings %v, want %v\n%s", got, want, text(mixed))
		}
		c := find(t, mixed, "explore/chunked-and-query")
		if c.Verdict != conformance.VerdictWarn || c.Level != conformance.LevelShould || c.Odds != "failed 3/3" || !strings.Contains(c.Expected, "as in other sequences") {
			t.Errorf("got %s, level %s, odds %q, expected %q; want a warning that names the other sequences", c.Verdict, c.Level, c.Odds, c.Expected)
		}
	})
	virtual(t, func(t *testing.T) {
		for _, one := range []struct {
			covers func(c *call, parts []string) []string
			says   string
		}{
			{func(_ *call, parts []string) []string { return withoutQuery(parts) }, "given the first outcome"},
			{func(_ *call, parts []string) []string { return parts }, "refused"},
		} {
			rep := searchFree(t, one.covers)
			if c := find(t, rep, "explore/query"); len(faults(rep)) > 0 || c.Verdict != conformance.VerdictPass || !strings.Contains(c.Findings[0].Text, ": the request is "+one.says) {
				t.Errorf("got findings %v, and %v; want none, and that the request is %s", faults(rep), c.Findings, one.says)
			}
		}
	})
}

// A server that takes short keys of lower-case letters and digits only, and answers others 400 or 500, has no finding: what it does not take
// says nothing of what it keeps.
func TestExploreKeysNotTaken(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 500} {
		virtual(t, func(t *testing.T) {
			_, url := newSample(t, choices{updates: true}, quirk{front: func(c *call) bool {
				key := strings.Trim(c.r.Header.Get("Idempotency-Key"), `"`)
				odd := len(key) > 40 || key != strings.ToLower(key) || strings.Contains(key, "%")
				if odd {
					c.send(c.refusal(status, "key", "no such keys"))
				}
				return odd
			}})
			o := explored(sampleOptions(url), 60)
			o.Profile, o.Run = choices{updates: true}.declare(), []string{"explore/key-*", "explore/repeat", "explore/chunked"}
			rep := run(t, o)
			if c := find(t, rep, "explore/key-end"); len(faults(rep)) > 0 || c.Verdict != conformance.VerdictSkip {
				t.Errorf("%d: got findings %v and %s of explore/key-end, want none and a skip\n%s", status, faults(rep), c.Verdict, text(rep))
			}
		})
	}
}

// Two equal observations settle a freedom; one does not, and what contradicts it begins anew.
func TestFreedomsSettle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ seen, want string }{
		{"s", ""}, {"sr", ""}, {"srs", ""}, {"ss", "s"}, {"srr", "r"}, {"ssrrr", "s"}, {"oo", "o"},
	} {
		if got := conformance.SettledFreedom(c.seen); got != c.want {
			t.Errorf("after %q: got %q settled, want %q", c.seen, got, c.want)
		}
	}
}
