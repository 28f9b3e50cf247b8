package classify_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/profile"
)

// TestPages: which bodies are HTML documents, as 2xx that nobody asked for and as 4xx.
func TestPages(t *testing.T) {
	t.Parallel()
	for _, r := range []struct {
		page       bool
		body, kind string
	}{
		{true, "<!DOCTYPE html><html></html>", "text/html"}, {true, "<!doctype HTML public x>", ""}, {true, "<HTML>", "application/json"},
		{true, "\ufeff<html>", ""}, {true, " \r\n\t<html lang=en>", ""}, {true, "<!-- down --> <!-- for now -->\n<html>", "text/plain"},
		{true, `<?xml version="1.0"?><!DOCTYPE html PUBLIC "x"><html xmlns="x">`, "application/xhtml+xml"}, {true, "<head><title>502</title>", ""},
		{true, "<title>Maintenance</title>", ""}, {true, "<h1>Down</h1>", ""}, {true, "<body bgcolor=white>", ""}, {true, "<p>Sorry.</p>", ""},
		{true, `<?xml version="1.0"?><html>`, "application/xml"}, {true, "<script>location='/login'</script>", ""},
		{true, `<meta http-equiv="refresh" content="0; url=/login">`, "text/html"}, {true, "<META charset=utf-8>", "Text/HTML; charset=utf-8"}, {true, "<center><b>503", "text/html"},
		{true, "<!-- x --><h2>Down</h2>", "text/html"}, {true, "<noscript>", "application/xhtml+xml"},
		{true, "\xff\xfe<\x00h\x00t\x00m\x00l\x00>\x00", ""}, {true, "\xfe\xff\x00<\x00H\x00T\x00M\x00L\x00>", "application/json"}, {true, "\xff\xfe \x00<\x00p\x00>\x00", ""},
		{false, "\xff\xfe{\x00}\x00", ""}, {false, "\xfe\xff\x00<\x00a\x00b\x00/\x00>", ""}, {false, "\xff\xfe", ""}, {false, "\xff\xfe<", ""},
		{false, "<meta/>", "application/xml"}, {false, "<metadata/>", "text/html"}, {false, "<payment/>", "text/html"}, {false, "<center-id>7</center-id>", "text/html"}, {false, "<link>/p/1</link>", ""},
		{false, "", "text/html"}, {false, "Scheduled maintenance", "text/html"}, {false, "404 page not found", ""}, {false, `{"a":"<html>"}`, ""}, {false, "a < b", ""},
		{false, `<?xml version="1.0"?><a><b/></a>`, ""}, {false, "<a><b/></a>", "application/xml; charset=utf-8"}, {false, "<table/>", "application/soap+xml"},
		{false, "<htmlReport/>", ""}, {false, "<paid/>", ""}, {false, "<svg xmlns='x'/>", ""}, {false, "<!DOCTYPE svg><svg/>", ""}, {false, "<!-- html --><order/>", "text/xml"},
		{false, "%PDF-1.7", ""}, {false, "id;name\n", "text/csv"}, {false, "<!-- never ends", ""}, {false, "<html", ""}, {false, "<", ""},
	} {
		v := classify.Classify(profile.Draft07(), answer(404, r.body, "Content-Type", r.kind), facts(false))
		if page := v.Flaw == classify.FlawPage; page != r.page {
			t.Errorf("404 %q (%s): a page %t, want %t", r.body, r.kind, page, r.page)
		}
		if r.kind == "text/html" && !r.page {
			continue // of a 2xx: TestTextCalledHTML
		}
		v = classify.Classify(profile.Draft07(), answer(200, r.body, "Content-Type", r.kind), facts(false))
		if page := v.Flaw == classify.FlawPage; page != r.page {
			t.Errorf("200 %q (%s): a page %t, want %t", r.body, r.kind, page, r.page)
		}
	}
}

// TestTextCalledHTML: which 2xx in text/html are answers of an API, although nobody asked for HTML.
func TestTextCalledHTML(t *testing.T) {
	t.Parallel()
	html := profile.Draft07()
	html.Own.HTML = profile.Yes
	for body, page := range map[string]bool{
		"Connection failed: SQLSTATE[HY000] [2002] Connection refused": true, "SQLSTATE[HY000]": true, "Access denied": true, "Fatal error: out of memory": true,
		"\nWarning: mysqli_connect()\n{\"id\":1}": true, "Error": true, "ACCESS_DENIED": true, "Scheduled maintenance": true, "<payment/>": true, "<center-id>7</center-id>": true,
		`<form action="/login" method="post"><input name="user"></form>`: true, `<link rel="stylesheet" href="/b.css"><div>Blocked</div>`: true, strings.Repeat("x", 65): true,
		"OK": false, " ok\n": false, "1": false, "success=1": false, `"p_123"`: false, `{"id":"p1"}`: false, " [1]": false, "\ufeff{}": false, "": false, " \n": false,
		`<?xml version="1.0"?><payment/>`: false,
	} {
		a := answer(200, body, "Content-Type", "text/html; charset=UTF-8")
		v := classify.Classify(profile.Draft07(), a, facts(false))
		if got := v.Flaw == classify.FlawPage; got != page || (v.Kind == classify.KindFinal) == page {
			t.Errorf("%q: %+v, want a page: %t", body, v, page)
		}
		asked := facts(false)
		asked.TakesHTML = true
		for name, v := range map[string]classify.Verdict{"asked for": classify.Classify(profile.Draft07(), a, asked), "the profile's": classify.Classify(html, a, facts(false))} {
			if v.Kind != classify.KindFinal {
				t.Errorf("%q, %s: %+v", body, name, v)
			}
		}
		plain := answer(200, body, "Content-Type", "text/plain")
		if v := classify.Classify(profile.Draft07(), plain, facts(false)); v.Kind != classify.KindFinal && !strings.HasPrefix(body, "<") {
			t.Errorf("%q as plain text: %+v", body, v)
		}
	}
}

// TestCutBodies: which unframed bodies of a 2xx lack their end. With a length only JSON is cut.
func TestCutBodies(t *testing.T) {
	t.Parallel()
	for _, r := range []struct {
		cut, framed bool // framed: it is cut with a length, too
		body, kind  string
	}{
		{true, true, `{"id":`, "application/json"}, {true, false, "", "application/json"}, {true, false, " \n", "application/problem+json"}, {true, false, "", "text/xml; charset=utf-8"},
		{true, false, `<?xml version="1.0"?><a><b>1</b>`, ""}, {true, false, "<a", "text/xml"}, {true, false, "<a>é</", "application/soap+xml"},
		{true, false, `<?xml version="1.0" encoding="ISO-8859-1"?><a>` + "\xe9", "text/xml"}, {true, false, "<?xml ver", ""}, {true, false, "<!-- begin -->", "text/xml"},
		{false, false, "", ""}, {false, false, "", "text/plain"}, {false, false, "OK", "text/xml"}, {false, false, "<a/>", "text/xml"}, {false, false, "<a><b/></a>\n", "text/xml"},
		{false, false, `<?xml version="1.0" encoding="ISO-8859-1"?><a>` + "\xe9</a>", "text/xml"}, {false, false, "<a>&nbsp;<br></br></a> and more", "text/xml"}, {false, false, "<a", "text/plain"},
	} {
		a := answer(200, r.body, "Content-Type", r.kind)
		if got := classify.Classify(profile.Draft07(), a, facts(false)).Flaw == classify.FlawCut; got != r.cut {
			t.Errorf("%q (%s): cut %t, want %t", r.body, r.kind, got, r.cut)
		}
		a.Framed = true
		if got := classify.Classify(profile.Draft07(), a, facts(false)).Flaw == classify.FlawCut; got != r.framed {
			t.Errorf("%q (%s) with a length: cut %t, want %t", r.body, r.kind, got, r.framed)
		}
	}
	for _, status := range []int{204, 205} {
		if v := classify.Classify(profile.Draft07(), answer(status, "", "Content-Type", "application/json"), facts(false)); v.Kind != classify.KindFinal {
			t.Errorf("an empty %d: %+v", status, v)
		}
	}
	coded := classify.Answer{Status: 201, Header: http.Header{"Content-Encoding": {"gzip"}}, Body: []byte(`{"id"`), CodingCut: true, Framed: true}
	if v := classify.Classify(profile.Draft07(), coded, facts(false)); v.Flaw != classify.FlawCut || v.Kind != classify.KindUnknown {
		t.Errorf("a coding that ends early: %+v", v)
	}
}

// TestWordsAboutTheKey: a 400 or 422 that speaks of idempotency, as no fact of the profile knows, is held, in doubt or not. One that says that the key is
// missing or malformed is a refusal.
func TestWordsAboutTheKey(t *testing.T) {
	t.Parallel()
	held := classify.Verdict{Hold: true, Reason: classify.ReasonUnclear, Flaw: classify.FlawKey}
	for body, refused := range map[string]bool{
		`{"error":"Idempotency key already used with a different request body"}`: false, `{"code":"IDEMPOTENCY_KEY_REUSE"}`: false, "<html>Idempotent request replayed</html>": false,
		`{"error":{"message":"Keys for idempotent requests can only be used with the same parameters they were first used with."}}`: false,
		`{"title":"Idempotency-Key is missing"}`: true, `{"error":"idempotency_key is required"}`: true, `{"error":"Idempotency-Key must be a UUID"}`: true,
		`{"error":"Idempotency-Key must be unique, and was used before"}`: false, `{"error":"no such card"}`: true, `{"errors":{"idempotency_key":["has already been taken"]}}`: false,
	} {
		for _, status := range []int{400, 422} {
			a := answer(status, body)
			got := classify.Classify(profile.Draft07(), a, facts(false))
			if refused && (got.Kind != classify.KindFinal || got.Flaw != classify.FlawNone) || !refused && got != held {
				t.Errorf("%d %s: %+v, refused %t", status, body, got, refused)
			}
			if got := classify.Classify(profile.Draft07(), a, facts(true)); !refused && got != held {
				t.Errorf("%d %s, in doubt: %+v", status, body, got)
			}
			if got := classify.Classify(profile.None(), a, classify.Facts{}); got.Kind == classify.KindUnknown {
				t.Errorf("%d %s, without keys: %+v", status, body, got)
			}
			marked := answer(status, `{"error":"idempotency key used"}`, "Idempotent-Replayed", "true")
			if got := classify.Classify(profile.Draft07(), marked, facts(true)); got.Kind != classify.KindFinal || !got.Stored {
				t.Errorf("%d with the mark of a replay: %+v", status, got)
			}
		}
	}
	known := &profile.Profile{Carrier: profile.Draft07().Carrier, BusinessConflict: []profile.Matcher{{Status: []int{422}, Pointer: "/code"}}}
	if got := classify.Classify(known, answer(422, `{"code":"idempotency","text":"used"}`), facts(false)); got.Kind != classify.KindFinal {
		t.Errorf("named by a fact: %+v", got)
	}
	if got := classify.Classify(profile.Draft07(), answer(402, `{"code":"idempotency_used"}`), facts(false)); got.Kind != classify.KindFinal {
		t.Errorf("402: %+v", got)
	}
}

// unread is a 201 whose body has a coding that nobody knows.
func unread(kind string) classify.Answer {
	return classify.Answer{Status: 201, Header: http.Header{"Content-Encoding": {"br"}, "Content-Type": {kind}}, Unread: true}
}

// TestFlawedSuccess: what a 2xx that may not be the API's, or not the whole answer, leads to.
func TestFlawedSuccess(t *testing.T) {
	t.Parallel()
	const page, cut = "<html></html>", `{"id":`
	held := func(f classify.Flaw) classify.Verdict {
		return classify.Verdict{Hold: true, Reason: classify.ReasonUnclear, Flaw: f}
	}
	again := func(f classify.Flaw) classify.Verdict { return classify.Verdict{Again: true, Flaw: f} }
	final := classify.Verdict{Kind: classify.KindFinal, Stored: true}
	named, html := profile.StripeV1(), profile.Draft07()
	html.Own.HTML = profile.Yes
	framed := func(body string) classify.Answer {
		a := answer(201, body)
		a.Framed = true
		return a
	}
	part := framed(cut)
	part.Whole = false
	pagePart := framed(page)
	pagePart.Whole = false
	for name, r := range map[string]struct {
		p      *profile.Profile
		a      classify.Answer
		change func(*classify.Facts)
		want   classify.Verdict
	}{
		"page, default":                 {profile.Draft07(), framed(page), nil, held(classify.FlawPage)},
		"page, named":                   {named, framed(page), nil, again(classify.FlawPage)},
		"page, named, in doubt":         {named, framed(page), func(f *classify.Facts) { f.InDoubt = true }, again(classify.FlawPage)},
		"page, named, repeated":         {named, framed(page), func(f *classify.Facts) { f.Repeated = true }, held(classify.FlawPage)},
		"page, named, not protected":    {named, framed(page), func(f *classify.Facts) { f.Protected = false }, held(classify.FlawPage)},
		"page, asked for":               {named, framed(page), func(f *classify.Facts) { f.TakesHTML = true }, final},
		"page, the profile's":           {html, framed(page), nil, final},
		"page, a part of it":            {named, pagePart, nil, again(classify.FlawPage)},
		"cut, default":                  {profile.Draft07(), framed(cut), nil, held(classify.FlawCut)},
		"cut by the connection":         {profile.Draft07(), answer(201, cut), nil, again(classify.FlawCut)},
		"cut by the connection, alike":  {profile.Draft07(), answer(201, cut), func(f *classify.Facts) { f.Repeated = true }, held(classify.FlawCut)},
		"cut by the connection, no key": {profile.None(), answer(201, cut), func(f *classify.Facts) { f.Protected = false }, held(classify.FlawCut)},
		"cut, named":                    {named, framed(cut), nil, again(classify.FlawCut)},
		"cut, asked for HTML":           {named, framed(cut), func(f *classify.Facts) { f.TakesHTML = true }, again(classify.FlawCut)},
		"over the bound":                {profile.Draft07(), part, nil, final},
		"a coding that nobody knows":    {named, unread("application/json"), nil, final},
		"the same, of no type":          {named, unread(""), nil, final},
		"the same, of a page":           {named, unread("text/html; charset=utf-8"), nil, again(classify.FlawPage)},
		"the same, of XHTML, default":   {profile.Draft07(), unread("application/xhtml+xml"), nil, held(classify.FlawPage)},
		"the same, asked for":           {named, unread("text/html"), func(f *classify.Facts) { f.TakesHTML = true }, final},
	} {
		f := facts(false)
		if r.change != nil {
			r.change(&f)
		}
		if got := classify.Classify(r.p, r.a, f); got != r.want {
			t.Errorf("%s: %+v, want %+v", name, got, r.want)
		}
	}
}

// TestBareRefusal: an HTML or empty 4xx that only its status would make final is a refusal of this send, and settles nothing.
func TestBareRefusal(t *testing.T) {
	t.Parallel()
	matched := &profile.Profile{Stored: profile.Stored{Client: []profile.Matcher{{Status: []int{402, 404, 410}}}}, BusinessConflict: []profile.Matcher{{Status: []int{410}}}}
	matched.Own.Bare = []int{402}
	const mark = "Idempotent-Replayed"
	unreadable := classify.Answer{Status: 404, Header: http.Header{}}
	for name, r := range map[string]struct {
		p       *profile.Profile
		a       classify.Answer
		fresh   classify.Kind
		flaw    classify.Flaw
		settles bool
	}{
		"empty":                    {profile.Draft07(), answer(404, ""), classify.KindRefused, classify.FlawEmpty, false},
		"blank":                    {profile.Draft07(), answer(404, " \n"), classify.KindRefused, classify.FlawEmpty, false},
		"page":                     {profile.Draft07(), answer(404, "<html></html>"), classify.KindRefused, classify.FlawPage, false},
		"replayed":                 {profile.Draft07(), answer(404, "", mark, "true"), classify.KindRefused, classify.FlawEmpty, false},
		"stored":                   {matched, answer(404, ""), classify.KindRefused, classify.FlawEmpty, false},
		"the profile's own":        {matched, answer(402, ""), classify.KindFinal, classify.FlawNone, true},
		"named by a matcher":       {matched, answer(410, ""), classify.KindFinal, classify.FlawNone, true},
		"text":                     {matched, answer(404, "no"), classify.KindFinal, classify.FlawNone, true},
		"not readable":             {matched, unreadable, classify.KindFinal, classify.FlawNone, true},
		"said to be worth another": {profile.StripeV1(), answer(404, "", "Stripe-Should-Retry", "true"), classify.KindRefused, classify.FlawEmpty, false},
	} {
		if got := classify.Classify(r.p, r.a, facts(false)); got.Kind != r.fresh || got.Flaw != r.flaw || got.Again || got.Stored && r.flaw != classify.FlawNone {
			t.Errorf("%s: %+v, want %v, %v", name, got, r.fresh, r.flaw)
		}
		if got := classify.Classify(r.p, r.a, facts(true)); (got.Kind == classify.KindFinal) != r.settles || !r.settles && (got.Kind != classify.KindUnknown || got.Hold || got.Flaw != r.flaw) {
			t.Errorf("%s, in doubt: %+v, settles %t", name, got, r.settles)
		}
	}
	for _, status := range []int{408, 409, 421, 425, 429} { // without a profile's word
		empty, full := answer(status, ""), answer(status, "no")
		for _, inDoubt := range []bool{false, true} {
			p := &profile.Profile{}
			if a, b := classify.Classify(p, empty, facts(inDoubt)), classify.Classify(p, full, facts(inDoubt)); a != b {
				t.Errorf("%d: %+v, and with a body %+v", status, a, b)
			}
		}
	}
}

// TestUnprotectedProvesLess: where no key protects, no answer is stored for an earlier attempt.
func TestUnprotectedProvesLess(t *testing.T) {
	t.Parallel()
	p := &profile.Profile{Stored: profile.Stored{Success: profile.Yes, Client: []profile.Matcher{{Status: []int{402}}}}}
	for _, status := range []int{201, 402} {
		v := classify.Classify(p, answer(status, "{}"), classify.Facts{})
		if v.Kind != classify.KindFinal || v.Stored {
			t.Errorf("%d: %+v", status, v)
		}
	}
	if v := classify.Classify(p, answer(402, "{}"), classify.Facts{InDoubt: true}); v.Kind != classify.KindUnknown {
		t.Errorf("in doubt: %+v", v)
	}
}

// TestAcceptsHTML by what Accept names.
func TestAcceptsHTML(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]bool{
		"": false, "*/*": false, "application/json": false, "text/html": true, "Text/HTML;q=0.8": true, "a/b , text/*;q=0.1": true, "text/html;q=0": false,
		"text/html;q=0.0, application/xhtml+xml": true, "text/plain": false, "text/html; q=x": true, "text/htm": false,
	} {
		for _, name := range []string{"Accept", "accept"} {
			if got := classify.AcceptsHTML(http.Header{name: {"application/json", accept}}); got != want {
				t.Errorf("%s: %q: %t, want %t", name, accept, got, want)
			}
		}
	}
	if classify.AcceptsHTML(nil) {
		t.Error("no header accepts HTML")
	}
}

// FuzzCutJSON: every part of a JSON object or array that lacks its end is recognised, and no whole one is taken for cut off.
func FuzzCutJSON(f *testing.F) {
	f.Add([]byte(`{"a":[1,"b\"",null,{"c":-1.5e3}]}`), uint(7))
	f.Add([]byte(` [ ] `), uint(2))
	f.Fuzz(func(t *testing.T, text []byte, cut uint) {
		flaw := func(text []byte) classify.Flaw {
			return classify.Classify(profile.Draft07(), answer(201, string(text)), facts(false)).Flaw
		}
		trimmed := bytes.TrimSpace(text)
		if !json.Valid(text) || len(trimmed) == 0 || trimmed[0] != '{' && trimmed[0] != '[' {
			_ = flaw(text)
			return
		}
		if flaw(text) != classify.FlawNone {
			t.Errorf("%q was taken for cut off", text)
		}
		if part := trimmed[:cut%uint(len(trimmed))]; len(part) > 0 && flaw(part) != classify.FlawCut {
			t.Errorf("%q of %q was taken for whole", part, trimmed)
		}
	})
}
