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

// probesMax is how many operations are sent at most to find out how the target takes one.
const probesMax = 12

// way is another way to send an operation, which servers are known to want.
type way struct {
	flags string   // of the command, that say the same
	words []string // in a refusal that speak for this way
	// change makes the options say so. It returns false if they say otherwise already.
	change func(o *Options) bool
	token  bool // the key is fetched first
	reads  bool // the server may read the body now, so that other words of its are progress
}

// ways lists what servers really use, the most common first.
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

// set sets a field that nobody has set.
func set[T comparable](field *T, value T) bool {
	var zero T
	if *field != zero {
		return false
	}
	*field = value
	return true
}

// inKeyHeader reports whether the key travels in a header, as far as the options say.
func inKeyHeader(o *Options) bool { return o.KeyField == "" && o.inHeader() }

// headerWay carries the key in another header.
func headerWay(name string) way {
	return way{flags: "--key-header " + name, words: []string{strings.ToLower(name)}, change: func(o *Options) bool {
		return inKeyHeader(o) && !strings.EqualFold(o.Profile.Carrier.Name, name) && set(&o.KeyHeader, name)
	}}
}

// jsonTemplate reports whether the body is a JSON object without a key in it.
func jsonTemplate(o *Options) bool {
	return strings.Contains(o.ContentType, "json") && strings.HasPrefix(o.Body, "{") && !strings.Contains(o.Body, "{key}")
}

// asForm sends the members of a flat JSON object as a form.
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

// tokenWay fetches the key first.
func tokenWay(method, path string) way {
	return way{flags: "--token-path " + path + " --token-method " + method, words: []string{"token"}, token: true, change: func(o *Options) bool {
		if o.handsOutKeys() {
			return false
		}
		o.TokenPath, o.TokenMethod = path, method
		return true
	}}
}

// prefixWay puts something in front of every key.
func prefixWay(prefix string) way {
	return way{flags: "--key-prefix " + prefix, words: []string{strings.ToLower(prefix)}, change: func(o *Options) bool { return set(&o.KeyPrefix, prefix) }}
}

var (
	namedHeader = regexp.MustCompile(`\b[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)+\b`)
	namedPrefix = regexp.MustCompile("(?i)(?:(?:start|begin)s? with|prefix(?: of| is)?)[ :]*[\"'`]?([A-Za-z][A-Za-z0-9]{0,15}[-_:.])")
	namedPath   = regexp.MustCompile(`(?:^|[\s"'(])(/[a-z][a-z0-9/_-]*)`)
)

// waysFor lists the ways to try after a refusal, those first that it speaks of.
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

// spoken reports whether a text speaks of a way.
func spoken(w way, text string) bool {
	return slices.ContainsFunc(w.words, func(word string) bool { return strings.Contains(text, word) })
}

// findable reports whether another way of sending may help after this answer.
func findable(a *answer) bool {
	switch a.status {
	case 0, http.StatusUnauthorized, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusTooManyRequests, http.StatusNotImplemented, http.StatusServiceUnavailable:
		return false
	}
	return a.status == http.StatusInternalServerError || a.status >= 400 && a.status < 500
}

// probesAllowed is how many operations may be sent to find a way in: elsewhere than on
// loopback none that nobody has allowed.
func (r *runner) probesAllowed() int {
	switch {
	case r.o.NoProbe:
		return 0
	case isLoopback(r.target.Hostname()):
		return probesMax
	}
	return min(probesMax, r.o.MaxEffects)
}

// findWayIn tries other ways to send an operation, until one is taken, and then keeps to it.
// A way after which the refusal is another one is kept as well: what it lacks yet is tried on
// top of it. It returns an operation that was taken, with its answer, or nil.
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

// pointAtToken fetches a key, and makes way and options say where in the answer it stands. It
// returns false if none is handed out.
func (x *trial) pointAtToken(w *way) bool {
	a := x.do(x.tokenFetch(&operation{target: x.r.target.RequestURI(), keyless: true}), "a token is fetched")
	pointer := pointerTo(a.body)
	if pointer != "" && pointer != tokenDefault {
		x.r.o.TokenPointer = pointer
		w.flags += " --token-pointer " + pointer
	}
	return a.kind == done && (pointer != "" || len(a.body) > 0 && !json.Valid(a.body))
}

// joined are flags on one line, each once.
func joined(flags []string) string {
	line := ""
	for _, f := range flags {
		line = strings.TrimSpace(line + " " + strings.TrimPrefix(f, line+" "))
	}
	return line
}

// by are the options with a way applied, and whether it changes anything.
func (o Options) by(w *way) (Options, bool) {
	o.Profile = o.Profile.Clone()
	if !w.change(&o) {
		return o, false
	}
	return o.withDefaults(), o.Validate() == nil
}

// tokenNames are the members under which servers hand out keys.
func tokenNames() []string {
	return []string{"token", "key", "idempotency_key", "idempotencyKey", "id", "value"}
}

// pointerTo finds where the key stands in the JSON of an answer: at a name in use, at the top
// or one level below. "" is: it is no JSON, or has none.
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

// wayFound is what the headline says of a way that was found, or "".
func (r *runner) wayFound() string {
	if r.wayIn == "" {
		return ""
	}
	return fmt.Sprintf("The first operation was refused; operations are taken with %s, which was found by trying (%s). Give these flags, or --no-probe.", r.wayIn, plural(r.tries, "probe"))
}

// carryInField carries the key in a field of the body.
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
