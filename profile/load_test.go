package profile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/profile"
)

// file is a profile file of these facts, whose sources are called after their confidence.
func file(facts string) string {
	var sources []string
	for _, c := range []string{"primary", "excerpt", "secondary", "assumed"} {
		if strings.Contains(facts, `"source": "`+c+`"`) {
			sources = append(sources, fmt.Sprintf(`%q: {"ref": "https://example.com/%s", "date": "2026-11-02", "confidence": %q}`, c, c, c))
		}
	}
	return `{"name": "my-api", "version": "1", "sources": {` + strings.Join(sources, ", ") + `}` + facts + `}`
}

func load(t *testing.T, facts string) *profile.Profile {
	t.Helper()
	p, err := profile.Load(strings.NewReader(file(facts)))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestLoadRefuses: one line that names the member and what is wanted.
func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	fact := func(name, value string) string {
		return file(`, "` + name + `": {"value": ` + value + `, "source": "primary"}`)
	}
	for text, want := range map[string]string{
		``: "it ends early", `[]`: "one JSON object", `{`: "ends early", `{} {}`: "after the JSON object",
		"{\n\n\"a\" 1}": "line 3:", `{"name": "x", "name": "y"}`: "name: it is there twice",
		`{"a": {"b": [{"c": 1, "c": 2}]}}`: "a.b.c: it is there twice", `{"Name": "x"}`: "Name: no such member; members are in lower case",
		`{"name": 3}`: "name: a JSON number, want a string", `{"version": "1"}`: "name: it is missing", `{"name": "x"}`: "version: it is missing",
		`{"name": "My API", "version": "1"}`: "name:", `{"name": "x", "version": " "}`: "version:",
		`{"name": "x", "version": "1", "carier": null}`:                                                                                                     "carier: no such member; want name, version",
		`{"name": "x", "version": "1", "sources": {"s": {"ref": " ", "date": "2026-11", "confidence": "primary"}}}`:                                         "sources.s.ref",
		`{"name": "x", "version": "1", "sources": {"s": {"ref": "r", "date": "2026-13", "confidence": "primary"}}}`:                                         "sources.s.date",
		`{"name": "x", "version": "1", "sources": {"s": {"ref": "r", "date": "2026-11", "confidence": "A"}}}`:                                               "want primary, excerpt, secondary or assumed",
		`{"name": "x", "version": "1", "sources": {"s": {"ref": "r", "date": "2026-11", "confidence": "primary"}}}`:                                         `sources: no fact names "s"`,
		`{"name": "x", "version": "1", "sources": {"s": {"ref": "r", "url": "u"}}}`:                                                                         `sources: unknown field "url"`,
		`{"name": "x", "version": "1", "methods": {"value": ["POST"], "source": "s"}}`:                                                                      `methods: source "s" is not in sources`,
		`{"name": "x", "version": "1", "methods": ["POST"]}`:                                                                                                `methods: want {"value"`,
		`{"name": "x", "version": "1", "methods": {"value": ["POST"], "sauce": "s"}}`:                                                                       `unknown field "sauce"`,
		file(`, "body": {"value": {"formats": ["json"]}, "source": "primary"}, "carrier": {"value": {"place": "form", "name": "k"}, "source": "primary"}`):  "the key travels in form field k, which none of them is",
		file(`, "body": {"value": {"formats": ["form"]}, "source": "primary"}, "carrier": {"value": {"place": "body", "name": "/k"}, "source": "primary"}`): "the key travels in JSON body at /k, which none of them is",
		fact("methods", `null`): "methods: no value", fact("methods", `[]`): "methods: an empty value",
		fact("methods", `["post"]`): `"post", want a method in upper case`, fact("methods", `["GET"]`): "GET takes no key", fact("methods", `["PUT", "PUT"]`): "twice",
		fact("carrier", `{"place": "cookie", "name": "k"}`): "place:", fact("carrier", `{"place": "header", "name": "a b"}`): "name of a header",
		fact("carrier", `{"place": "header", "name": "Host"}`): "name of a header", fact("carrier", `{"place": "body", "name": "key"}`): "JSON pointer",
		fact("carrier", `{"place": "form"}`): "name of a form's field", fact("body", `{"formats": ["xml"]}`): "want json or form", fact("body", `{"formats": ["form", "form"]}`): "form is there twice",
		fact("body", `{"compared": "meaning"}`): "want bytes or values", fact("body", `{"formats": "form"}`): "want a list",
		fact("carrier", `{"place": "query"}`): "query parameter", fact("encoding", `"quoted"`): "want raw or sf-string",
		fact("encoding", `"sf-string"`): "sf-string is a spelling in headers",
		fact("reference", `{"path": "/o?r={/r}", "same": [{"request": "/r", "resource": "/r"}], "found_within": 60}`):   "want a string",
		fact("reference", `{"path": "/o?r={/r}", "same": [{"request": "/r", "resource": "/r"}], "found_within": "2d"}`): "found_within: ",
		fact("reference", `{"path": "/o?r={/r}", "same": [{"request": "/r", "resource": "/r"}], "strong": true}`):       `unknown field "strong"`,
		fact("cancel", `{"for": "/p", "path": "/p/{id}", "pointer": "/key"}`):                                           "path: ", fact("cancel", `{"path": "/p", "pointer": "/key"}`): "for: ",
		fact("cancel", `{"for": "/p", "path": "/c", "pointer": "key"}`): "JSON pointer",
		fact("token", `{"path": "/t", "pointer": "/token"}`):            "token: it travels in a header", fact("token", `{"pointer": "/token"}`): "path: it is missing",
		fact("token", `{"path": "t", "pointer": "/token"}`): "starts with / or {path}", fact("token", `{"path": "/t?for={ref}", "pointer": "/token"}`): "JSON pointer",
		fact("token", `{"path": "/t", "pointer": "token"}`): "JSON pointer", fact("token", `{"method": "PUT", "path": "/t", "pointer": "/token"}`): "want POST or GET",
		fact("first_sent", `"Content Length"`): "name of a header", fact("first_sent", `"X-Sent"`): "first_sent: it travels in a header beside",
		fact("key", `{"min_bytes": 9, "max_bytes": 8}`): "no key meets", fact("key", `{"min_bytes": 300}`): "no key meets",
		fact("key", `{"max_bytes": 35, "format": "uuid"}`): "36 characters", fact("key", `{"alphabet": "0123456789", "format": "uuidv4"}`): "lacks characters",
		fact("key", `{"alphabet": "ab c"}`): "visible ASCII", fact("key", `{"format": "guid"}`): "want uuid", fact("key", `{"max_bytes": "9"}`): "max_bytes: a JSON string, want a whole number",
		fact("window", `{"floor": "1 day", "published": "yes"}`): "such as 24h", fact("window", `{"floor": "24h"}`): "published: want yes",
		fact("window", `{"floor": "48h", "published": "no"}`): "want at most 24h", fact("window", `{"floor": "24h", "published": "maybe"}`): "want yes, no or unknown",
		fact("window", `{"floor": "24h", "published": "yes", "ceiling": "48h"}`): `unknown field "ceiling"`,
		fact("mismatch", `[{}]`): "matcher 1: no condition", fact("mismatch", `[{"status": [422]}, {"equals": ["x"]}]`): "matcher 2: ",
		fact("mismatch", `[{"pointer": "error"}]`): "JSON pointer", fact("mismatch", `[{"status": [199]}]`): "want 200 to 599",
		fact("mismatch", `[{"header": "X", "has": ["two words"]}]`): "single words", fact("replay", `[{"status": [200], "has": ["true"]}]`): "has: want a header",
		fact("own", `{"bare": [429]}`): "429 is not final", fact("own", `{"bare": [499]}`): "499 is not final", fact("own", `{"bare": [423]}`): "423 is not final", fact("own", `{"bare": [200]}`): "200 is not final", fact("own", `{"bare": [404, 404]}`): "404 is there twice",
		fact("own", `{"html": "maybe"}`): "want yes, no or unknown", fact("own", `{}`): "an empty value",
		fact("not_acted", `{"again": [409]}`): "409 does not prove", fact("not_acted", `{"stop": [499]}`): "499 does not prove", fact("not_acted", `{"stop": [500]}`): "500 does not prove",
		fact("should_retry", `{"header": "X", "yes": "a", "no": "a"}`): "another value", fact("should_retry", `{"header": "X", "yes": "True"}`): "lower case", fact("should_retry", `{"header": "X", "no": "n", "absent": "yes"}`): "absent: a header that is not there",
		fact("retry_after", `[{"header": "X", "unit": "s"}]`): "want http or ms", fact("min_delay", `"2d"`): "at most 24h", fact("min_delay", `60`): "a JSON number, want a string",
		fact("retry_after", `[{"unit": "ms"}]`): "want a header or a pointer", fact("retry_after", `[{"header": "X", "pointer": "/x", "unit": "ms"}]`): "not both",
		fact("retry_after", `[{"pointer": "wait", "unit": "http"}]`): "JSON pointer", fact("retry_after", `[{"pointer": "/wait", "unit": "s"}]`): "want http or ms",
		fact("lookup", `{"pointer": "/id", "path": "/x/{id}"}`): "already_done", fact("lookup", `{"pointer": "/id", "path": "x"}`): "holds {id}",
		fact("stored", `{"client": [{}]}`): "no condition", fact("fingerprint", `["a b"]`): "name of a header",
		fact("min_delay", `"60"`): "such as 24h", fact("min_delay", `"0s"`): "such as 24h", fact("window", `{"floor": "100000d", "published": "yes"}`): "such as 24h",
		fact("window", `{"floor": "99999d", "published": "yes"}`): "at most 3650d", fact("mismatch", `[{"pointer": "/a~2"}]`): "JSON pointer",
	} {
		_, err := profile.Load(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "profile: ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s\ngives %v, want a line with %q", text, err, want)
		}
	}
	if _, err := profile.Load(strings.NewReader(strings.Repeat(" ", profile.FileBytesMax+1))); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a huge file gives %v", err)
	}
	if _, err := profile.Load(strings.NewReader(strings.Repeat(`{"a":`, 100))); err == nil || !strings.Contains(err.Error(), "nested too deep") {
		t.Errorf("a deep file gives %v", err)
	}
}

// TestLoadFileNamesTheFile: an error begins with the path.
func TestLoadFileNamesTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mine.json")
	if _, err := profile.LoadFile(path); err == nil || !strings.HasPrefix(err.Error(), "profile: "+path+": no such file") {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(path, []byte(`{"name": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := profile.LoadFile(path); err == nil || err.Error() != "profile: "+path+": name: a JSON number, want a string" {
		t.Errorf("a bad file: %v", err)
	}
	if err := os.WriteFile(path, []byte(file(`, "methods": {"value": ["POST"], "source": "excerpt"}`)), 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := profile.LoadFile(path); err != nil || p.Name != "my-api" || p.Methods[0] != "POST" {
		t.Errorf("a good file: %+v, %v", p, err)
	}
}

// TestBlanks: what a file leaves out, or says is null, is unknown; the window and the encoding are then the cautious
// choice and say that nobody promised them.
func TestBlanks(t *testing.T) {
	t.Parallel()
	p := load(t, `, "$comment": ["a", {"x": 1}], "mismatch": null, "_comment": 7, "methods": {"$comment": "c", "value": ["POST"], "source": "excerpt"}`)
	if p.Encoding != profile.Raw || p.Window != (profile.Window{Floor: time.Hour, Published: profile.No}) {
		t.Errorf("encoding %q, window %+v", p.Encoding, p.Window)
	}
	for _, field := range []string{"Encoding", "Window"} {
		if p.Sources[field].Confidence != profile.Assumed {
			t.Errorf("%s is from %+v", field, p.Sources[field])
		}
	}
	if !reflect.DeepEqual(p.Stored, profile.Stored{}) || p.Carrier.Name != "" || p.Mismatch != nil || p.Complete() {
		t.Errorf("a blank is not unknown: %+v", p)
	}
	if got := strings.Join(p.Unknown(), " "); got != "carrier window in_progress mismatch stored.server_error" {
		t.Errorf("unknown: %s", got)
	}
	said := 0
	for _, s := range p.Statements() {
		if s.Value != "" {
			said++
		}
	}
	if said != 3 { // methods, and the two choices
		t.Errorf("%d statements are said, want 3: %+v", said, p.Statements())
	}
}

// TestConfidence: what a secondary source says may only make a reader more careful, and an assumption decides nothing.
func TestConfidence(t *testing.T) {
	t.Parallel()
	list := `[{"status": [423], "pointer": "/code", "equals": ["busy"]}]`
	matcher := []profile.Matcher{{Status: []int{423}, Pointer: "/code", Equals: []string{"busy"}}}
	for _, c := range []struct {
		fact, value string
		confidence  string // of the source, if it is not secondary
		want        func(p *profile.Profile) any
		is          any
		doubted     bool
	}{
		{"in_progress", list, "", func(p *profile.Profile) any { return [2][]profile.Matcher{p.InProgress, p.Unclear} }, [2][]profile.Matcher{nil, matcher}, true},
		{"mismatch", list, "", func(p *profile.Profile) any { return [2][]profile.Matcher{p.Mismatch, p.Unclear} }, [2][]profile.Matcher{nil, matcher}, true},
		{"already_done", list, "", func(p *profile.Profile) any { return [2][]profile.Matcher{p.AlreadyDone, p.Unclear} }, [2][]profile.Matcher{nil, matcher}, true},
		{"business_conflict", list, "", func(p *profile.Profile) any { return [2][]profile.Matcher{p.BusinessConflict, p.Unclear} }, [2][]profile.Matcher{nil, matcher}, true},
		{"poisoned", list, "", func(p *profile.Profile) any { return p.Poisoned }, matcher, false},
		{"replay", list, "", func(p *profile.Profile) any { return len(p.Replay) + len(p.Unclear) }, 0, true},
		{"stored", `{"success": "yes", "client": ` + list + `, "server_error": "no"}`, "", func(p *profile.Profile) any { return p.Stored }, profile.Stored{}, true},
		{"not_acted", `{"again": [429]}`, "", func(p *profile.Profile) any { return p.NotActed }, profile.NotActed{}, true},
		{"own", `{"html": "yes", "bare": [404]}`, "", func(p *profile.Profile) any { return p.Own }, profile.Own{}, true},
		{"should_retry", `{"header": "X", "yes": "y", "no": "n", "absent": "no"}`, "excerpt", func(p *profile.Profile) any { return p.ShouldRetry }, profile.ShouldRetry{Header: "X", Yes: "y", No: "n", Absent: profile.No}, false},
		{"should_retry", `{"header": "X", "yes": "y", "no": "n"}`, "", func(p *profile.Profile) any { return p.ShouldRetry }, profile.ShouldRetry{Header: "X", No: "n"}, true},
		{"carrier", `{"place": "header", "name": "X-Key"}`, "", func(p *profile.Profile) any { return p.Carrier }, profile.Carrier{}, true},
		{"reference", `{"path": "/o?r={/r}", "same": [{"request": "/r", "resource": "/r"}], "found_within": "90s"}`, "excerpt", func(p *profile.Profile) any { return *p.Reference },
			profile.Reference{Path: "/o?r={/r}", Same: []profile.Same{{Request: "/r", Resource: "/r"}}, FoundWithin: 90 * time.Second}, false},
		{"cancel", `{"for": "/p", "path": "/c", "pointer": "/key"}`, "", func(p *profile.Profile) any { return p.Cancel }, (*profile.Cancel)(nil), true},
		{"token", `{"path": "/t", "pointer": "/token"}`, "", func(p *profile.Profile) any { return p.Token }, (*profile.Token)(nil), true},
		{"first_sent", `"X-Sent"`, "", func(p *profile.Profile) any { return p.FirstSent }, "", true},
		{"body", `{"formats": ["form"]}`, "", func(p *profile.Profile) any { return p.Body.Default() }, profile.JSONBody, true},
		{"body", `{"formats": ["form", "json"]}`, "assumed", func(p *profile.Profile) any { return p.Body.Default() }, profile.FormBody, false},
		{"methods", `["POST"]`, "", func(p *profile.Profile) any { return p.Methods }, []string(nil), true},
		{"account_headers", `["X"]`, "", func(p *profile.Profile) any { return p.AccountHeaders }, []string(nil), true},
		{"fingerprint", `["X"]`, "", func(p *profile.Profile) any { return p.Fingerprint }, []string{"X"}, false},
		{"key", `{"max_bytes": 1000}`, "", func(p *profile.Profile) any { return p.Key.MaxBytes }, 255, true},
		{"key", `{"max_bytes": 36}`, "", func(p *profile.Profile) any { return p.Key.MaxBytes }, 36, true},
		{"window", `{"floor": "30d", "published": "yes"}`, "", func(p *profile.Profile) any { return p.Window }, profile.Window{Floor: time.Hour, Published: profile.No}, true},
		{"window", `{"floor": "5m", "published": "yes"}`, "", func(p *profile.Profile) any { return p.Window }, profile.Window{Floor: 5 * time.Minute, Published: profile.No}, true},
		{"window", `{"floor": "24h", "published": "no"}`, "assumed", func(p *profile.Profile) any { return p.Window }, profile.Window{Floor: 24 * time.Hour, Published: profile.No}, false},
		{"min_delay", `"60s"`, "", func(p *profile.Profile) any { return p.MinDelay }, time.Minute, false},
		{"window", `{"floor": "30d", "published": "yes"}`, "excerpt", func(p *profile.Profile) any { return p.Window }, profile.Window{Floor: 720 * time.Hour, Published: profile.Yes}, false},
		{"in_progress", list, "excerpt", func(p *profile.Profile) any { return p.InProgress }, matcher, false},
		{"key", `{"max_bytes": 200}`, "assumed", func(p *profile.Profile) any { return p.Key.MaxBytes }, 200, false},
	} {
		if c.confidence == "" {
			c.confidence = "secondary"
		}
		p := load(t, `, "`+c.fact+`": {"value": `+c.value+`, "source": "`+c.confidence+`"}`)
		if got := c.want(p); !reflect.DeepEqual(got, c.is) {
			t.Errorf("%s %s (%s) reads as %+v, want %+v", c.fact, c.value, c.confidence, got, c.is)
		}
		if doubted := len(p.Doubted) == 1 && p.Doubted[0].Name == c.fact && p.Doubted[0].Use != "" && p.Doubted[0].Value != ""; doubted != c.doubted {
			t.Errorf("%s (%s): doubted %+v", c.fact, c.confidence, p.Doubted)
		}
		if p.Complete() {
			t.Errorf("%s (%s) alone makes a complete profile", c.fact, c.confidence)
		}
	}
	for _, fact := range []string{"carrier", "already_done", "mismatch", "poisoned", "business_conflict", "in_progress", "not_acted", "own", "stored", "should_retry", "lookup"} {
		value := map[string]string{
			"carrier": `{"place": "header", "name": "X-Key"}`, "not_acted": `{"again": [429]}`, "own": `{"html": "yes"}`, "stored": `{"success": "yes"}`,
			"should_retry": `{"header": "X", "no": "n"}`, "lookup": `{"pointer": "/id", "path": "{path}/{id}"}`,
		}[fact]
		if value == "" {
			value = list
		}
		_, err := profile.Load(strings.NewReader(file(`, "` + fact + `": {"value": ` + value + `, "source": "assumed"}`)))
		if err == nil || !strings.Contains(err.Error(), fact+": an assumption must not decide") {
			t.Errorf("an assumed %s gives %v", fact, err)
		}
	}
	for facts, want := range map[string]string{
		`, "window": {"value": {"floor": "1h", "published": "yes"}, "source": "assumed"}`: "window: published is yes",
		`, "key": {"value": {"max_bytes": 300}, "source": "assumed"}`:                     "key: max_bytes: 300",
	} {
		if _, err := profile.Load(strings.NewReader(file(facts))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %v", facts, err)
		}
	}
}

// TestComplete: exactly carrier, window, in_progress, mismatch and kept errors, from a primary or excerpted source, are needed of a ready profile.
func TestComplete(t *testing.T) {
	t.Parallel()
	facts := map[string]string{
		"carrier":     `{"place": "header", "name": "X-Key"}`,
		"window":      `{"floor": "24h", "published": "yes"}`,
		"in_progress": `[{"status": [409]}]`,
		"mismatch":    `[{"status": [422]}]`,
		"stored":      `{"success": "yes", "server_error": "no"}`,
	}
	with := func(but, confidence string) *profile.Profile {
		text := `, "methods": {"value": ["POST"], "source": "primary"}`
		for name, value := range facts {
			c := "primary"
			if name == but {
				if c = confidence; c == "" {
					continue
				}
			}
			text += `, "` + name + `": {"value": ` + value + `, "source": "` + c + `"}`
		}
		return load(t, text)
	}
	if p := with("", ""); !p.Complete() || len(p.Unknown()) != 0 {
		t.Errorf("all four are said, and unknown is %v", p.Unknown())
	}
	for name := range facts {
		for confidence, complete := range map[string]bool{"": false, "secondary": false, "excerpt": true} {
			p := with(name, confidence)
			if p.Complete() != complete || !complete && (len(p.Unknown()) != 1 || !strings.HasPrefix(p.Unknown()[0], name)) {
				t.Errorf("%s %q: complete %t, unknown %v", name, confidence, p.Complete(), p.Unknown())
			}
		}
	}
	already := with("mismatch", "")
	already.AlreadyDone, already.Sources["AlreadyDone"] = []profile.Matcher{{Status: []int{409}}}, profile.Source{Confidence: profile.Excerpt}
	if !already.Complete() {
		t.Error("where any repeat is already done, the mismatch is known")
	}
}

// TestUnclearStated: what a file calls unclear comes with its source, and apart from lists that became unclear.
func TestUnclearStated(t *testing.T) {
	t.Parallel()
	p := load(t, `, "unclear": {"value": [{"status": [409]}], "source": "excerpt"}, "in_progress": {"value": [{"status": [423]}, {"status": [425]}], "source": "secondary"}`)
	if len(p.Unclear) != 3 || p.Unclear[0].Status[0] != 409 {
		t.Errorf("unclear: %v", p.Unclear)
	}
	texts := map[string]string{}
	for _, s := range p.Statements() {
		texts[s.Name] = s.Text + ", " + string(s.Source.Confidence) + ", " + s.Use
	}
	if texts["unclear"] != "409, excerpt, " || texts["in_progress"] != "423; 425, secondary, held: nothing is concluded from such an answer" {
		t.Errorf("%q", texts)
	}
}
