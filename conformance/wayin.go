package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/profile"
)

// probesMax is the most operations that findWayIn sends.
const probesMax = 12

// way is another way to send an operation, such as another header for the key.
type way struct {
	flags string   // the command's flags for it
	words []string // in lower case; a refusal with one of them makes this way likely
	// change puts the way into the options, which must be a copy: it returns false if they
	// already say otherwise, perhaps after a part of the change.
	change func(o *Options) bool
	token  bool // the key is fetched from the server first
	reads  bool // the server may read the body now, so that a refusal with another body is progress
}

// ways returns the known ways in which servers take a key and a body, such as another header, the most frequent first. They are tried if the first
// plain operation is refused, those first that have one of their words in the refusal. flags are the command's flags for a way; change puts it into
// the options, and returns false if they say otherwise already. reads: the server may read the body now, so that another refusal is progress. token:
// a key is fetched first.
func ways() []way {
	all := []way{headerWay("X-Idempotency-Key"), {
		flags: "--key-quoted", words: []string{"quot", "structured", "sf-string"},
		change: func(o *Options) bool { return inKeyHeader(o) && set(&o.KeyQuoted, true) },
	}, {
		flags: "--content-type " + formType, words: []string{"form", "urlencoded", "content-type", "content type", "media type"},
		change: asForm, reads: true,
	}, {
		flags: "--key-field /idempotency_key", words: []string{"idempotency_key", "field", "member"},
		change: func(o *Options) bool { return jsonTemplate(o) && set(&o.KeyField, "/idempotency_key") },
	}, {
		flags: "--key-format uuid7", words: []string{"uuid", "v7", "version 7"},
		change: func(o *Options) bool { return set(&o.KeyFormat, KeyUUIDv7) },
	}}
	for _, name := range []string{"X-Request-Id", "Idempotence-Key", "Request-Id"} {
		all = append(all, headerWay(name))
	}
	return append(all, way{
		flags: "--content-type " + formType + " --key-field idempotency_key", words: []string{"idempotency_key"},
		change: func(o *Options) bool {
			return (o.ContentType == formType || asForm(o)) && set(&o.KeyField, "idempotency_key")
		},
	}, tokenWay(http.MethodGet, "/tokens"), tokenWay(http.MethodPost, "/tokens"))
}

// set sets a field that has its zero value. It returns false, and changes nothing, if it has
// another.
func set[T comparable](field *T, value T) bool {
	var zero T
	if *field != zero {
		return false
	}
	*field = value
	return true
}

// inKeyHeader reports whether the options carry the key in a header.
func inKeyHeader(o *Options) bool { return o.KeyField == "" && o.inHeader() }

// headerWay returns the way with the key in the named header.
func headerWay(name string) way {
	return way{flags: "--key-header " + name, words: []string{strings.ToLower(name)}, change: func(o *Options) bool {
		return inKeyHeader(o) && !strings.EqualFold(o.Profile.Carrier.Name, name) && set(&o.KeyHeader, name)
	}}
}

// jsonTemplate reports whether the body is a JSON object without a key in it.
func jsonTemplate(o *Options) bool {
	return strings.Contains(o.ContentType, "json") && strings.HasPrefix(o.Body, "{") && !strings.Contains(o.Body, "{key}")
}

// asForm makes the body template a form with the members of its flat JSON object. It returns
// false, and changes nothing, if the template is no such object.
func asForm(o *Options) bool {
	var members map[string]any
	decoder := json.NewDecoder(strings.NewReader(o.Body))
	decoder.UseNumber()
	if !jsonTemplate(o) || decoder.Decode(&members) != nil {
		return false
	}
	var pairs []string
	for name, value := range members {
		switch value.(type) {
		case string, json.Number, bool:
			pairs = append(pairs, fmt.Sprintf("%s=%v", name, value))
		default:
			return false
		}
	}
	slices.Sort(pairs)
	o.ContentType, o.Body = formType, strings.Join(pairs, "&")
	return true
}

// tokenWay returns the way of servers that hand out keys: a token is fetched from the path first, and sent as the key.
func tokenWay(method, path string) way {
	return way{flags: "--token-path " + path + " --token-method " + method, words: []string{"token"}, token: true, change: func(o *Options) bool {
		if o.handsOutKeys() {
			return false
		}
		o.TokenPath, o.TokenMethod = path, method
		return true
	}}
}

// prefixWay returns the way with a prefix in front of every key.
func prefixWay(prefix string) way {
	return way{flags: "--key-prefix " + prefix, words: []string{strings.ToLower(prefix)}, change: func(o *Options) bool { return set(&o.KeyPrefix, prefix) }}
}

var (
	namedHeader = regexp.MustCompile(`\b[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)+\b`)
	namedPrefix = regexp.MustCompile("(?i)(?:(?:start|begin)s? with|prefix(?: of| is)?)[ :]*[\"'`]?([A-Za-z][A-Za-z0-9]{0,15}[-_:.])")
	namedPath   = regexp.MustCompile(`(?:^|[\s"'(])(/[a-z][a-z0-9/_-]*)`)
)

// waysFor lists the ways to send an operation that are to be tried after the refusal a: first those with a hint in its text or headers, then the
// others. A prefix of keys, a header or a path that the text names makes a way of its own (namedPrefix, namedHeader, namedPath). A refusal may be a
// long page: bounds keep the number of such ways small. 415 (Unsupported Media Type) hints at a form.
func waysFor(a *answer) []way {
	text := string(a.body[:min(len(a.body), 4096)])
	for _, name := range sortedNames(a.header) {
		text += " " + strings.Join(a.header[name], " ")
	}
	var all []way
	for _, m := range namedPrefix.FindAllStringSubmatch(text, 2) {
		all = append(all, prefixWay(m[1]))
	}
	for _, name := range namedHeader.FindAllString(text, 20) {
		lower := strings.ToLower(name)
		if strings.Contains(lower, "key") || strings.Contains(lower, "-id") || strings.Contains(lower, "token") {
			all = append(all, headerWay(name))
		}
	}
	for _, m := range namedPath.FindAllStringSubmatch(text, 2) {
		if strings.Contains(m[1], "token") || strings.Contains(m[1], "key") {
			all = append(all, tokenWay(http.MethodGet, m[1]), tokenWay(http.MethodPost, m[1]))
		}
	}
	told, rest := []way{}, []way{}
	for _, w := range append(all, ways()...) {
		if a.status == http.StatusUnsupportedMediaType && w.flags == "--content-type "+formType || spoken(w, strings.ToLower(text)) {
			told = append(told, w)
		} else {
			rest = append(rest, w)
		}
	}
	return append(told, rest...)
}

// spoken reports whether the text, in lower case, has one of the way's words.
func spoken(w way, text string) bool {
	return slices.ContainsFunc(w.words, func(word string) bool { return strings.Contains(text, word) })
}

// findable reports whether another way of sending may help after this refusal. Answers such as 401, 404 or 429 have other causes. 500 is among those
// that it may help: some servers crash without the key or the body that they expect.
func findable(a *answer) bool {
	switch a.status {
	case 0, http.StatusUnauthorized, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusTooManyRequests, http.StatusNotImplemented, http.StatusServiceUnavailable:
		return false
	}
	return a.status == http.StatusInternalServerError || a.status >= 400 && a.status < 500
}

// probesAllowed returns the most operations for findWayIn, the search for a way of sending that the target takes: none with Options.NoProbe, and off
// loopback none without Options.MaxEffects, since each may have a real effect.
func (r *runner) probesAllowed() int {
	switch {
	case r.o.NoProbe:
		return 0
	case isLoopback(r.target.Hostname()):
		return probesMax
	}
	return min(probesMax, r.o.MaxEffects)
}

// findWayIn tries other ways to send an operation after the refusal a, until one succeeds, and leaves that way in r.o. If a way leads to another
// refusal (by its status or, for a way by which the server may read the body, by its text), the next ways are tried on top of it. It returns the
// successful operation with its answer; nil means none was found, and r.o is as before. by applies a way to the options. It must run before the first
// case, alone.
func (x *trial) findWayIn(a *answer) (*operation, *answer) {
	if !findable(a) {
		return nil, nil
	}
	given, r := x.r.o, x.r
	tried := map[string]bool{}
	left := r.probesAllowed()
	var flags []string
	for list := waysFor(a); len(list) > 0 && left > 0 && x.ctx.Err() == nil; {
		w := list[0]
		list = list[1:]
		next, ok := r.o.by(&w)
		if tried[w.flags] || !ok {
			continue
		}
		tried[w.flags] = true
		before := r.o
		r.o = next
		left--
		if w.token && !x.pointAtToken(&w) {
			r.o = before
			continue
		}
		op := x.newOperation()
		b := x.do(op, "with "+w.flags)
		switch {
		case b.kind == done:
			r.wayIn = joined(append(flags, w.flags))
			r.tries = r.probesAllowed() - left
			return op, b
		case findable(b) && (b.status != a.status || w.reads && !bytes.Equal(a.body, b.body)):
			a, flags, list = b, append(flags, w.flags), waysFor(b)
		default:
			r.o = before
		}
	}
	r.o = given
	return nil, nil
}

// pointAtToken fetches a key from the server, and puts the place of the key in the answer into the options and the way's flags. It returns false if
// the server hands out no key: by a success, in a usual member of a JSON body, or as plain text.
func (x *trial) pointAtToken(w *way) bool {
	a := x.do(x.tokenFetch(&operation{target: x.r.target.RequestURI(), keyless: true}), "a token is fetched")
	pointer := pointerTo(a.body)
	if pointer != "" && pointer != tokenDefault {
		x.r.o.TokenPointer = pointer
		w.flags += " --token-pointer " + pointer
	}
	return a.kind == done && (pointer != "" || len(a.body) > 0 && !json.Valid(a.body))
}

// joined returns flags of the command on one line. A flag that begins with the line so far adds only its rest: some ways consist of an earlier one
// and more.
func joined(flags []string) string {
	line := ""
	for _, f := range flags {
		line = strings.TrimSpace(line + " " + strings.TrimPrefix(f, line+" "))
	}
	return line
}

// by returns the options with a way applied, with defaults. False: the way changes nothing, or
// the options are no longer valid. o itself stays as it is.
func (o Options) by(w *way) (Options, bool) {
	o.Profile = o.Profile.Clone()
	if !w.change(&o) {
		return o, false
	}
	return o.withDefaults(), o.Validate() == nil
}

// tokenNames returns the members under which servers hand out keys.
func tokenNames() []string {
	return []string{"token", "key", "idempotency_key", "idempotencyKey", "id", "value"}
}

// pointerTo returns the JSON pointer to the key in an answer, at the top or one level below,
// under one of the usual names; "" if there is none.
func pointerTo(body []byte) string {
	var top map[string]any
	if json.Unmarshal(body, &top) != nil {
		return ""
	}
	for _, name := range tokenNames() {
		if text, ok := top[name].(string); ok && text != "" {
			return "/" + name
		}
	}
	for _, outer := range []string{"data", "result", "token", "key"} {
		inner, _ := top[outer].(map[string]any)
		for _, name := range tokenNames() {
			if text, ok := inner[name].(string); ok && text != "" {
				return "/" + outer + "/" + name
			}
		}
	}
	return ""
}

// wayFound returns the sentence of the report about the way of sending that worked; "" if the options worked as given.
func (r *runner) wayFound() string {
	if r.wayIn == "" {
		return ""
	}
	return fmt.Sprintf("The first operation was refused; operations are taken with %s, which was found by trying (%s). Give these flags, or --no-probe.", r.wayIn, plural(r.tries, "probe"))
}

// carryInField makes the profile carry the key in Options.KeyField, a field of the body, and adds {key} to the template of the body unless it is
// there. The profile must be a copy.
func (o *Options) carryInField() {
	place, name := profile.Body, "/"+strings.TrimPrefix(o.KeyField, "/")
	if o.ContentType == formType {
		place, name = profile.Form, strings.TrimPrefix(o.KeyField, "/")
	}
	o.Profile.Carrier = profile.Carrier{Place: place, Name: name}
	switch {
	case strings.Contains(o.Body, "{key}"):
	case place == profile.Form:
		o.Body += "&" + name + "={key}"
	default:
		o.Body = string(withMember([]byte(o.Body), name[1:], `"{key}"`))
	}
}
