package classify

import (
	"testing"

	"github.com/oncehttp/oncehttp/profile"
)

// TestRepeats: a resource repeats a request only if it has each of its values at the same place.
func TestRepeats(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		request, resource string
		want              bool
	}{
		{`{"amount":1}`, `{"id":"p","amount":1.0}`, true},
		{`{"amount":1}`, `{"amount":2}`, false},
		{`{"amount":1,"currency":"eur"}`, `{"amount":1}`, false},
		{`{"a":{"b":[{"c":true},"x"]}}`, `{"a":{"b":[{"c":true,"d":1},"x"],"e":2}}`, true},
		{`{"a":{"b":[{"c":true},"x"]}}`, `{"a":{"b":[{"c":true}]}}`, false},
		{`{"a":{"b":["x"]}}`, `{"a":{"b":["y"]}}`, false},
		{`{}`, `{"amount":1}`, false}, {`{"a":{}}`, `{"a":{}}`, false}, {`{"a":[]}`, `{"a":[]}`, false}, {`{"a":null}`, `{"a":null}`, false},
		{`amount=1`, `{"amount":1}`, false}, {`{"amount":1}`, `amount`, false}, {``, ``, false},
	} {
		if got := Repeats([]byte(c.request), []byte(c.resource)); got != c.want {
			t.Errorf("%s, %s: %t", c.request, c.resource, got)
		}
	}
}

// TestObjectID: the id of the one object in an answer, or none.
func TestObjectID(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"id":"ch_1","card":{"id":"c"}}`: "ch_1", `{"id":7}`: "7", `{"payments":{"id":"PM1"}}`: "PM1", `{"data":[{"id":"p1"}],"has_more":false}`: "p1",
		`{"data":{"payment":{"id":"p1"}}}`: "p1", `{"data":[{"id":"p1"},{"id":"p2"}]}`: "", `{"a":{"id":"1"},"b":{"id":"2"}}`: "", `{"id":null}`: "", `{}`: "", `[]`: "", ``: "",
	} {
		if got := ObjectID([]byte(body)); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

// TestAlreadyDone: verdicts read the resource; without a doubt about an earlier attempt it must repeat the request.
func TestAlreadyDone(t *testing.T) {
	t.Parallel()
	plain, reads := profile.Draft07(), profile.Draft07()
	reads.Verdicts = []profile.Verdict{{Pointer: "/s", Equals: []string{"ok"}, Proves: profile.ProvesSucceeded}, {Pointer: "/s", Equals: []string{"no"}, Proves: profile.ProvesRefused}}
	done := Verdict{Kind: KindFinal, AlreadyDone: true, Stored: true}
	duplicate, unclear := Verdict{Hold: true, Reason: ReasonDuplicate}, Verdict{Hold: true, Reason: ReasonUnclear}
	for _, c := range []struct {
		p       *profile.Profile
		found   string
		inDoubt bool
		want    Verdict
	}{
		{plain, `{"amount":1}`, false, done}, {plain, `{"amount":2}`, false, duplicate}, {plain, `{"amount":2}`, true, done}, {plain, ``, true, done}, {plain, ``, false, duplicate},
		{reads, `{"s":"ok"}`, true, done}, {reads, `{"s":"no"}`, true, Verdict{Kind: KindFinal, Refused: true, Stored: true}}, {reads, `{"s":"later"}`, true, unclear}, {reads, ``, true, unclear},
		{reads, `{"s":"ok","amount":2}`, false, duplicate},
	} {
		if got := AlreadyDone(c.p, done, []byte(`{"amount":1}`), Answer{Status: 200, Body: []byte(c.found), Whole: c.found != ""}, c.inDoubt); got != c.want {
			t.Errorf("%s, in doubt %t: %+v, want %+v", c.found, c.inDoubt, got, c.want)
		}
	}
}
