package conformance

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/profile"
)

// operation is one request of a case, with its key. Several goroutines may send it at once; it
// must not change once it is sent. with returns a changed copy.
type operation struct {
	method, target string      // target is path and query
	key            string      // unencoded; "": a key from the server could not be fetched
	lines          []string    // values of the key header on the wire; nil: key, encoded
	keyless        bool        // without the key header
	ref            string      // {ref} in the template: the witness counts effects by it
	body           []byte      // shared by copies: replace it, never write into it
	contentType    string      // "": no Content-Type
	firstSent      time.Time   // the first-sent time in its header, for profiles with such a field
	extra          [][2]string // further header fields, name and value, in order
	stranger       bool        // sent as the second caller, with Options.As
	lowerName      bool        // the name of the key header in lower case
	anonymous      bool        // sent without Authorization
	backwards      bool        // header fields in the opposite order, after Host
	lowerNames     bool        // the names of all header fields in lower case
	failing        int         // the status that steering.fail has asked for; 0: none
}

// newOperation returns a new operation with a key and a reference of its own (the text by which its effects are counted). For the same run, case,
// salt and call number they are the same. If the server hands keys out, a request fetches the key first; if that fails, the key is empty. Only the
// case's goroutine calls it.
func (x *trial) newOperation() *operation {
	x.made++
	seed := x.r.id + "\x00" + x.c.ID + "\x00" + x.salt + "\x00" + strconv.Itoa(x.made)
	op := &operation{
		method: x.r.o.Method, target: x.r.target.RequestURI(),
		key: x.r.key(seed), ref: "r" + digestHex("ref\x00" + seed)[:24],
		contentType: x.r.o.ContentType, firstSent: time.Now(),
	}
	if x.r.o.handsOutKeys() {
		op.key = x.token(op)
	}
	op.fill(x.r)
	return op
}

// changedOperation returns a new operation with a change. If the server hands keys out, and the change makes it one of the second caller, it fetches
// another key as that caller: the first one belongs to the usual caller.
func (x *trial) changedOperation(change func(*operation)) *operation {
	op := x.newOperation().with(change)
	if x.r.o.handsOutKeys() && op.stranger {
		op.key = x.token(op)
		op.fillKey(x.r)
	}
	return op
}

// fill renders the body, and a key in the query, for the current ref and key. Call it after a
// change of either; other changes of the body are lost.
func (op *operation) fill(r *runner) {
	op.body = []byte(render(r.o.Body, op.ref, op.key))
	op.fillKey(r)
}

// fillKey puts the key into the query if the profile carries it there. Keys in headers are
// added when the operation is sent, keys in bodies by fill.
func (op *operation) fillKey(r *runner) {
	if place := r.o.Profile.Carrier; place.Place == profile.Query {
		op.setQuery(url.QueryEscape(place.Name), url.QueryEscape(op.key))
	}
}

// setQuery sets one query parameter, in place of an earlier one. Both texts must be escaped
// already.
func (op *operation) setQuery(name, value string) {
	path, query, _ := strings.Cut(op.target, "?")
	var kept []string
	for pair := range strings.SplitSeq(query, "&") {
		if pair != "" && pair != name && !strings.HasPrefix(pair, name+"=") {
			kept = append(kept, pair)
		}
	}
	op.target = path + "?" + strings.Join(append(kept, name+"="+value), "&")
}

// addQuery appends a piece of a query, such as "sleep=200", as it is.
func (op *operation) addQuery(piece string) {
	mark := "?"
	if strings.Contains(op.target, "?") {
		mark = "&"
	}
	op.target += mark + piece
}

// setPath replaces the path and keeps the query.
func (op *operation) setPath(path string) {
	_, query, found := strings.Cut(op.target, "?")
	op.target = path
	if found {
		op.target += "?" + query
	}
}

// with returns a copy after change. The copy may be sent and changed on its own; both share
// the bytes of body.
func (op *operation) with(change func(*operation)) *operation {
	dup := *op
	dup.lines, dup.extra = slices.Clone(op.lines), slices.Clone(op.extra)
	change(&dup)
	return &dup
}

// changed returns another request under op's key: with a reference of its own, and each number
// in the body one higher, so that any comparison of bodies sees the difference.
func (x *trial) changed(op *operation) *operation {
	other := x.newOperation()
	return op.with(func(dup *operation) {
		dup.ref = other.ref
		dup.body = []byte(render(x.r.o.Body, dup.ref, dup.key))
		if x.r.o.ContentType == formType {
			dup.body = bumpFields(dup.body)
			return
		}
		dup.body = bumpNumbers(dup.body)
	})
}

// bumpNumbers returns the body with one added to each number of at most nine digits that is a member's value. It works on the text, and so on any
// that looks like JSON there: a number between a colon and a comma or brace.
func bumpNumbers(body []byte) []byte {
	number := regexp.MustCompile(`(:\s*)(\d{1,9})(\s*[,}])`)
	return number.ReplaceAllFunc(body, func(match []byte) []byte {
		part := number.FindSubmatch(match)
		n, _ := strconv.Atoi(string(part[2])) // at most nine digits
		return slices.Concat(part[1], strconv.AppendInt(nil, int64(n)+1, 10), part[3])
	})
}

// bumpFields returns the form with one added to each field that is a number of at most nine
// digits.
func bumpFields(form []byte) []byte {
	pairs := strings.Split(string(form), "&")
	for i, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		if n, err := strconv.Atoi(value); err == nil && n >= 0 && len(value) <= 9 {
			pairs[i] = name + "=" + strconv.Itoa(n+1)
		}
	}
	return []byte(strings.Join(pairs, "&"))
}

// jsonBody reports whether the template of the body is a JSON object, so that cases can add and change members.
func (r *runner) jsonBody() bool {
	var object map[string]any
	return strings.Contains(r.o.ContentType, "json") && json.Unmarshal([]byte(render(r.o.Body, "r", "k")), &object) == nil
}

// withMember returns the JSON object with one more member at its end. value is JSON text. It
// returns a new slice; text without a closing brace comes back as it is.
func withMember(object []byte, name, value string) []byte {
	end := bytes.LastIndexByte(object, '}')
	if end < 0 {
		return object
	}
	comma := ","
	if bytes.HasSuffix(bytes.TrimSpace(object[:end]), []byte("{")) {
		comma = ""
	}
	return slices.Concat(object[:end], []byte(comma+strconv.Quote(name)+":"+value), object[end:])
}

// key returns the key for a seed, always the same in one run. It is a UUID of version 4, or 7 with Options.KeyFormat, behind Options.KeyPrefix; h[12]
// and h[16] are its version and its variant. Without format and prefix, a profile's alphabet or length changes it: other characters are dropped, and
// the rest is repeated or cut.
func (r *runner) key(seed string) string {
	h := []byte(digestHex("key\x00" + seed)[:32])
	h[12] = '4'
	if r.o.KeyFormat == KeyUUIDv7 {
		copy(h, fmt.Sprintf("%012x", r.made.UnixMilli()))
		h[12] = '7'
	}
	h[16] = "89ab"[h[16]%4]
	text := r.o.KeyPrefix + string(h[:8]) + "-" + string(h[8:12]) + "-" + string(h[12:16]) + "-" + string(h[16:20]) + "-" + string(h[20:])
	rule := r.o.Profile.Key
	if rule.Format != profile.AnyFormat || r.o.KeyFormat != "" || r.o.KeyPrefix != "" {
		return text
	}
	if rule.Alphabet != "" {
		text = strings.Map(func(c rune) rune {
			if strings.ContainsRune(rule.Alphabet, c) {
				return c
			}
			return -1
		}, text)
		if text == "" {
			text = strings.Repeat(rule.Alphabet[:1], 1) // no character of the UUID is allowed
		}
	}
	for len(text) < rule.MinBytes {
		text += text
	}
	if limit := r.keyBytesMax(); len(text) > limit {
		text = text[:limit]
	}
	return text
}

// keyBytesMax returns the greatest length of a key under the profile, in bytes; 255 if it
// states none.
func (r *runner) keyBytesMax() int {
	if r.o.Profile.Key.MaxBytes > 0 {
		return r.o.Profile.Key.MaxBytes
	}
	return 255
}

// anyFormat reports whether cases may send keys in any format: neither the profile, nor the
// options, nor the server prescribes one.
func (r *runner) anyFormat() bool {
	rule := r.o.Profile.Key
	return rule.Format == profile.AnyFormat && rule.Alphabet == "" && r.o.KeyFormat == "" && r.o.KeyPrefix == "" && !r.o.handsOutKeys()
}

// inHeader reports whether the profile carries the key in a header.
func (o *Options) inHeader() bool {
	place := o.Profile.Carrier.Place
	return place == profile.Header || place == ""
}

// encode returns a key as the profile writes it in a header: quoted, or as it is.
func encode(p *profile.Profile, key string) string {
	if p.Encoding == profile.SFString {
		return quote(key)
	}
	return key
}

// quote returns a key as a structured-field String (RFC 9651 section 4.1.6), for printable
// ASCII.
func quote(key string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}

// sentKey returns the key as sent, several header lines joined, and whether the request carries one: in a query or a body it always does.
func (op *operation) sentKey(r *runner) (string, bool) {
	switch {
	case !r.o.inHeader():
		return op.key, true
	case op.keyless:
		return "", false
	}
	return strings.Join(op.keyLines(r), ", "), true
}

// keyLines returns the values of the key header, one for each line on the wire.
func (op *operation) keyLines(r *runner) []string {
	if op.lines != nil {
		return op.lines
	}
	return []string{encode(r.o.Profile, op.key)}
}

// caller returns the name, for the report, of the credentials with which the request is sent: "none", "second" for another caller's, or "" for the
// usual ones.
func (op *operation) caller() string {
	switch {
	case op.anonymous:
		return "none"
	case op.stranger:
		return "second"
	}
	return ""
}

// fields returns the header fields, name and value, in the order of the wire, without the framing of the body. A second caller (stranger) has
// Options.As on top of the usual fields, an anonymous one no Authorization. The slice is new.
func (op *operation) fields(r *runner) [][2]string {
	fields := [][2]string{{"Host", r.target.Host}, {"User-Agent", "oncehttp-check/" + Version}, {"Accept", "*/*"}}
	own := r.o.Header
	if op.stranger {
		own = merged(own, r.o.As)
	}
	for _, name := range sortedNames(own) {
		if op.anonymous && strings.EqualFold(name, "Authorization") {
			continue
		}
		for _, value := range own[name] {
			fields = append(fields, [2]string{name, value})
		}
	}
	if len(op.body) > 0 && op.contentType != "" {
		fields = append(fields, [2]string{"Content-Type", op.contentType})
	}
	if r.o.inHeader() && !op.keyless {
		name := r.o.Profile.Carrier.Name
		if op.lowerName {
			name = strings.ToLower(name)
		}
		for _, line := range op.keyLines(r) {
			fields = append(fields, [2]string{name, line})
		}
		if name := firstSentHeader(r.o.Profile); name != "" {
			fields = append(fields, [2]string{name, op.firstSent.UTC().Format(http.TimeFormat)})
		}
	}
	return op.shaped(append(fields, op.extra...))
}

// shaped gives header fields the order and the spelling that the operation asks for (backwards, lowerNames), in place, and returns them. The first
// field, Host, keeps its place.
func (op *operation) shaped(fields [][2]string) [][2]string {
	if op.backwards {
		slices.Reverse(fields[1:])
	}
	for i := range fields {
		if op.lowerNames {
			fields[i][0] = strings.ToLower(fields[i][0])
		}
	}
	return fields
}

// firstSentHeader returns the name of the header for the time of the first attempt; "" if the API has none. That of OASIS Repeatable Requests has a
// fixed name, also for a profile that does not say it.
func firstSentHeader(p *profile.Profile) string {
	if p.FirstSent == "" && strings.EqualFold(p.Carrier.Name, oasisHeader) {
		return "Repeatability-First-Sent"
	}
	return p.FirstSent
}

// merged returns base with the fields of over in place of its own, without regard to the case
// of names. It changes neither; either may be nil.
func merged(base, over http.Header) http.Header {
	all := base.Clone()
	if all == nil {
		all = http.Header{}
	}
	for name, values := range over {
		for had := range all {
			if strings.EqualFold(had, name) {
				delete(all, had)
			}
		}
		all[name] = values
	}
	return all
}

// sortedNames returns the field names of a header, sorted.
func sortedNames(h http.Header) []string {
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// digestHex returns the SHA-256 of a text as 64 hexadecimal digits.
func digestHex(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
