package conformance_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/conformance"
)

// caseBook is the ids of version 1.0. An id is never changed and never removed.
const caseBook = `
replay/answered replay/status replay/body-bytes replay/effects-once replay/headers replay/no-set-cookie replay/marker
replay/not-marked-when-first replay/after-100-requests replay/large-body replay/empty-body-204 replay/binary replay/gzip
conflict/not-executed conflict/not-silent conflict/rejected-status conflict/original-survives conflict/error-shape
conflict/no-leak conflict/json-respelled conflict/null-vs-absent conflict/1.0-vs-1 conflict/array-order
scope/other-path-not-answered scope/other-resource-empty-body scope/other-method scope/other-query
scope/other-principal-not-answered scope/fresh-key-executes scope/safe-method-not-answered
inflight/once inflight/converges inflight/status-or-wait inflight/retry-after-present inflight/retry-after-sane
inflight/retry-after-honoured inflight/other-body inflight/burst inflight/follower-leaves inflight/leader-leaves inflight/leaves-no-trap
key/missing key/missing-not-merged key/empty-not-shared key/sf-string-accepted key/quoted-equals-bare key/malformed-sf-rejected
key/sf-parameters-ignored key/two-lines key/255-accepted key/5000-rejected-4xx key/invalid-is-4xx key/invalid-not-executed
key/case-sensitive key/non-ascii key/hostile-names
outcome/4xx outcome/5xx outcome/5xx-resolves outcome/transient-not-pinned outcome/crash-resolves outcome/crash-effect
net/abort-then-retry-resolves net/once net/response-lost-then-retry net/truncated-does-not-claim net/slow-upload-duplicate
net/reset-vs-fin net/expect-continue net/chunked-equals-length
time/expires time/not-before
restart/replay-survives restart/inflight-killed-resolves restart/no-double-after-kill
soak/linearizable
conflict/late-difference inflight/around-completion key/first-character net/keep-alive oasis/repeatable-requests
outcome/corrected-body outcome/store-outage outcome/unauthorised-not-consumed replay/other-headers scope/head-options`

// laterCases is the ids of later versions.
const laterCases = `
replay/first-executes-once replay/second-path replay/second-caller replay/other-method replay/after-a-pause replay/plain-after-gzip
conflict/one-number-differs conflict/large-numbers inflight/long-work key/digits key/header-name-case net/pipelined-twice
key/short-protected conflict/string-case replay/other-content-type
token/unknown-refused token/other-caller-refused token/fetched-apart
conflict/nested-differs inflight/refusal-not-confirmed net/truncated-repeat replay/large-answer replay/without-body`

// The book holds every id that it ever held, and each case says all that a
// report, a list and the runner need of it.
func TestBook(t *testing.T) {
	t.Parallel()
	ids := conformance.IDs()
	want := strings.Fields(caseBook + laterCases)
	slices.Sort(want)
	sorted := slices.Sorted(slices.Values(ids))
	if !slices.Equal(sorted, want) {
		t.Errorf("got ids %v, want %v", sorted, want)
	}
	seen := map[string]bool{}
	slug := regexp.MustCompile(`^[a-z]+/[a-z0-9.-]+$`)
	levels := []conformance.Level{
		conformance.LevelSafety, conformance.LevelLiveness, conformance.LevelMust,
		conformance.LevelShould, conformance.LevelPolicy, conformance.LevelObserve,
	}
	for _, c := range conformance.Cases() {
		if seen[c.ID] {
			t.Errorf("%s stands twice", c.ID)
		}
		if later := slices.Contains(strings.Fields(laterCases), c.ID); later != (c.Since == conformance.Version) {
			t.Errorf("%s: got since %q, want %s for the cases of this version and for no other", c.ID, c.Since, conformance.Version)
		}
		seen[c.ID] = true
		if !slices.Contains(levels, c.Level) || !slug.MatchString(c.ID) || c.Since == "" || len(c.Spec) == 0 {
			t.Errorf("%s: got level %q, since %q, %d sources", c.ID, c.Level, c.Since, len(c.Spec))
		}
		for _, sentence := range []string{c.Rule, c.Impact} {
			if len(sentence) < 20 || !strings.HasSuffix(sentence, ".") {
				t.Errorf("%s: %q is not a sentence", c.ID, sentence)
			}
		}
		for _, ref := range c.Spec {
			if ref.Name == "" || ref.Quote == "" {
				t.Errorf("%s: source %q says nothing", c.ID, ref.Name)
			}
		}
	}
}

// What a case depends on is in the book, and nothing depends on itself. A case
// that is run beside others never waits for one that is run alone, after them.
func TestBookAfter(t *testing.T) {
	t.Parallel()
	for _, c := range conformance.Cases() {
		visit(t, c, []string{c.ID})
		for _, id := range c.After {
			if before, _ := conformance.Find(id); before.Alone && !c.Alone {
				t.Errorf("%s is run before %s, which it depends on", c.ID, id)
			}
		}
	}
}

func visit(t *testing.T, c conformance.Case, path []string) {
	for _, id := range c.After {
		before, found := conformance.Find(id)
		if !found {
			t.Fatalf("%s depends on %s, which is no case", c.ID, id)
		}
		if slices.Contains(path, id) {
			t.Fatalf("a circle: %v back to %s", path, id)
		}
		visit(t, before, append(slices.Clone(path), id))
	}
}

// Cases that are run alone are run in the order of the book, so what they depend
// on has to stand in front of them.
func TestBookAlone(t *testing.T) {
	t.Parallel()
	ids := conformance.IDs()
	for _, c := range conformance.Cases() {
		for _, id := range c.After {
			if before, _ := conformance.Find(id); c.Alone && before.Alone && slices.Index(ids, id) > slices.Index(ids, c.ID) {
				t.Errorf("%s stands before %s, which it depends on", c.ID, id)
			}
		}
	}
}

// The outline's entries are all covered.
func TestBookOutline(t *testing.T) {
	t.Parallel()
	covered := map[string]bool{}
	for _, c := range conformance.Cases() {
		for _, ref := range c.Spec {
			covered[ref.Name] = true
		}
	}
	for id := range strings.FieldsSeq("T1 T2 T3 T4 T5 T6 T7 T8 T8b T9 T10 T11 T12 T13 T14 T15 T16 T17 T18 T19 T20 T21 T22 T23 T24 S1 S2 S3 S4 S5 L1") {
		if !covered[id] {
			t.Errorf("no case covers %s", id)
		}
	}
}

func TestGlob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, id string
		want        bool
	}{
		{"scope/**", "scope/other-path", true}, {"scope/*", "scope/other-path", true}, {"scope", "scope/other-path", false},
		{"scope/other-path", "scope/other-path", true}, {"*", "a/b", true}, {"*once", "inflight/once", true},
		{"*/o*e", "inflight/once", true}, {"n*/once", "inflight/once", false}, {"inflight/once*once", "inflight/once", false},
		{"", "a/b", false}, {"a*b*", "a/b", true}, {"*a*", "b/c", false},
	} {
		if got := conformance.GlobMatch(c.pattern, c.id); got != c.want {
			t.Errorf("GlobMatch(%q, %q): got %v, want %v", c.pattern, c.id, got, c.want)
		}
	}
}

func TestPointer(t *testing.T) {
	t.Parallel()
	document := `{"a":{"b":[1,"x",true,{"c/d":"y","e~f":12345678901234567890}]},"":null}`
	for pointer, want := range map[string]string{
		"/a/b/0": "1", "/a/b/1": "x", "/a/b/2": "true", "/a/b/3/c~1d": "y", "/a/b/3/e~0f": "12345678901234567890",
		"/a/b/9": "", "/a/b/-1": "", "/a": "", "/a/b/x": "", "/z": "", "/": "", "/a/b/1/x": "",
	} {
		got, found := conformance.LookupText(document, pointer)
		if got != want || found != (want != "") {
			t.Errorf("%s: got %q %v, want %q", pointer, got, found, want)
		}
	}
	if _, found := conformance.LookupText("no JSON", "/a"); found {
		t.Error("found something in what is no JSON")
	}
}
