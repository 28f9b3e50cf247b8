package profile

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
)

// The bounds of values in files.
const (
	keyBytesMax  = 255                       // of a key without a known limit
	windowMax    = 10 * 365 * 24 * time.Hour // more than any API promises
	minDelayMax  = 24 * time.Hour
	nameBytesMax = 64
	saidBytesMax = 400 // of the quotation of a source for one fact
)

// The alphabets of names.
const (
	lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"
)

// checkHead checks name and version of a profile, and each of its sources. It returns the first error, with the name of the member.
func checkHead(p *Profile, sources map[string]Source) error {
	switch {
	case p.Name == "" || strings.Trim(p.Name, lower+digits+".-") != "" || p.Name[0] == '.' || p.Name[0] == '-' || len(p.Name) > nameBytesMax:
		return fmt.Errorf("name: %q, want lower-case letters, digits, dots and dashes, at most %d", p.Name, nameBytesMax)
	case strings.TrimSpace(p.Version) == "" || len(p.Version) > nameBytesMax:
		return fmt.Errorf("version: %q, want 1 to %d characters", p.Version, nameBytesMax)
	}
	for name, s := range sources {
		switch {
		case strings.TrimSpace(s.Ref) == "":
			return fmt.Errorf("sources.%s.ref: want a URL, or a repository and path, or what was tried", name)
		case !isDate(s.Date):
			return fmt.Errorf("sources.%s.date: %q, want a day or a month, such as 2026-11-30 or 2026-11", name, s.Date)
		case !slices.Contains([]Confidence{Primary, Excerpt, Secondary, Assumed}, s.Confidence):
			return fmt.Errorf("sources.%s.confidence: %q, want primary, excerpt, secondary or assumed", name, s.Confidence)
		}
	}
	return nil
}

// checkSaid checks the quotation of a source: short, and in one line.
func checkSaid(text string) error {
	if len(text) > saidBytesMax || strings.ContainsFunc(text, unicode.IsControl) {
		return fmt.Errorf("want a few words of the source, in one line, at most %d bytes", saidBytesMax)
	}
	return nil
}

// isDate reports whether text is a day or a month from the year 2000 on.
func isDate(text string) bool {
	for _, layout := range []string{"2006-01-02", "2006-01"} {
		if t, err := time.Parse(layout, text); err == nil && t.Year() >= 2000 {
			return true
		}
	}
	return false
}

// checkCarrier checks the place in which the key travels, and that the name fits it: a header's name for a header, a JSON pointer for a body.
func checkCarrier(p *Profile) error {
	switch c := p.Carrier; c.Place {
	case Header:
		return checkHeaders([]string{c.Name})
	case Body:
		return checkPointer(c.Name)
	case Form, Query:
		if c.Name == "" {
			return errors.New("name: want the name of a form's field or of a query parameter")
		}
		return nil
	case Nowhere:
		if c.Name != "" {
			return errors.New("name: a key that is not sent has none")
		}
		return nil
	default:
		return fmt.Errorf("place: %q, want header, body, form, query or none", c.Place)
	}
}

// checkEncoding refuses an unknown encoding, and the empty one.
func checkEncoding(p *Profile) error {
	if p.Encoding != Raw && p.Encoding != SFString {
		return fmt.Errorf("%q, want raw or sf-string", p.Encoding)
	}
	return nil
}

// checkKeyRule refuses a rule for keys that no key can meet. A MaxBytes of 0 means keyBytesMax.
func checkKeyRule(p *Profile) error {
	k := p.Key
	switch {
	case k.MinBytes < 0 || k.MaxBytes < 0 || k.MaxBytes > 0 && k.MaxBytes < k.MinBytes || k.MaxBytes == 0 && k.MinBytes > keyBytesMax:
		return fmt.Errorf("min_bytes %d and max_bytes %d: no key meets them", k.MinBytes, k.MaxBytes)
	case !slices.Contains([]Format{AnyFormat, UUID, UUIDv4}, k.Format):
		return fmt.Errorf("format: %q, want uuid or uuidv4", k.Format)
	case strings.ContainsFunc(k.Alphabet, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("alphabet: want visible ASCII characters")
	case k.Format == AnyFormat:
		return nil
	}
	return checkUUIDRule(k)
}

// checkUUIDRule refuses bounds and alphabets that no UUID can meet, for a rule that asks for UUIDs. The generated ones are in lower case.
func checkUUIDRule(k KeyRule) error {
	switch {
	case k.MinBytes > 36 || k.MaxBytes > 0 && k.MaxBytes < 36:
		return fmt.Errorf("format: a UUID has 36 characters, which min_bytes %d and max_bytes %d keep out", k.MinBytes, k.MaxBytes)
	case k.Alphabet != "" && strings.Trim("0123456789abcdef-", k.Alphabet) != "":
		return errors.New("alphabet: it lacks characters of a UUID")
	}
	return nil
}

// checkBody refuses unknown formats of bodies and unknown ways to compare them, and a format that is listed twice.
func checkBody(p *Profile) error {
	for i, format := range p.Body.Formats {
		switch {
		case format != JSONBody && format != FormBody:
			return fmt.Errorf("formats: %q, want json or form", format)
		case slices.Contains(p.Body.Formats[:i], format):
			return fmt.Errorf("formats: %s is there twice", format)
		}
	}
	if !slices.Contains([]Comparison{"", ByBytes, ByValues}, p.Body.Compared) {
		return fmt.Errorf("compared: %q, want bytes or values", p.Body.Compared)
	}
	return nil
}

// checkMethods checks the methods of the profile.
func checkMethods(p *Profile) error { return checkMethodList(p.Methods) }

// checkMethodList refuses texts that are no methods, methods without keys at any API (they change nothing), and a method listed twice.
func checkMethodList(methods []string) error {
	never := []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodConnect, http.MethodTrace}
	for i, m := range methods {
		switch {
		case !isToken(m) || m != strings.ToUpper(m):
			return fmt.Errorf("%q, want a method in upper case", m)
		case slices.Contains(never, m):
			return fmt.Errorf("%s takes no key here", m)
		case slices.Contains(methods[:i], m):
			return fmt.Errorf("%s is there twice", m)
		}
	}
	return nil
}

// checkWindow checks the time for which the API remembers a key. The floor is the time that is sure. A floor that the API promises may be up to windowMax, one
// that nobody promises up to WindowCap.
func checkWindow(p *Profile) error {
	switch w := p.Window; {
	case w.Floor <= 0 || w.Floor > windowMax:
		return fmt.Errorf("floor: want a time of at most %v", spanText(windowMax))
	case w.Published == Unknown:
		return errors.New("published: want yes where the API promises the floor, else no")
	case w.Published == No && w.Floor > WindowCap:
		return fmt.Errorf("floor: %v that nobody promises, want at most %v", spanText(w.Floor), spanText(WindowCap))
	}
	return nil
}

// checkHeaders refuses names that are no header's, and headers of framing, which the HTTP client writes itself.
func checkHeaders(names []string) error {
	framing := []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Transfer-Encoding", "Upgrade", "Content-Length", "Host"}
	for _, name := range names {
		if !isToken(name) || slices.Contains(framing, http.CanonicalHeaderKey(name)) {
			return fmt.Errorf("%q, want the name of a header", name)
		}
	}
	return nil
}

// isToken reports whether s is a token of RFC 9110 section 5.6.2.
func isToken(s string) bool {
	return s != "" && strings.Trim(s, lower+upper+digits+"!#$%&'*+-.^_`|~") == ""
}

// checkPointer checks a JSON pointer (RFC 6901 section 3). The pointer to the whole document, "", is refused.
func checkPointer(pointer string) error {
	escapes := strings.Count(pointer, "~0") + strings.Count(pointer, "~1")
	if !strings.HasPrefix(pointer, "/") || strings.Count(pointer, "~") != escapes {
		return fmt.Errorf("%q, want a JSON pointer such as /error/code", pointer)
	}
	return nil
}

// checkMatchers checks each matcher of the list.
func checkMatchers(list []Matcher) error {
	for i, m := range list {
		if err := checkMatcher(m); err != nil {
			return fmt.Errorf("matcher %d: %w", i+1, err)
		}
	}
	return nil
}

// checkMatcher refuses a matcher, a condition on an answer, that every answer meets or no answer can meet, and one with a part missing.
func checkMatcher(m Matcher) error {
	switch {
	case len(m.Status) == 0 && m.Header == "" && m.Pointer == "":
		return errors.New("no condition; want a status, header or pointer")
	case len(m.Has) > 0 && m.Header == "":
		return errors.New("has: want a header beside it")
	case len(m.Equals) > 0 && m.Pointer == "":
		return errors.New("equals: want a pointer beside it")
	case slices.ContainsFunc(m.Status, func(status int) bool { return status < 200 || status > 599 }):
		return fmt.Errorf("status: %s, want 200 to 599", joined(m.Status))
	}
	return checkConditions(m)
}

// checkConditions checks header, words and pointer of a matcher.
func checkConditions(m Matcher) error {
	for _, word := range m.Has {
		if word == "" || strings.Trim(word, lower+upper+digits+"_./+-") != "" {
			return fmt.Errorf("has: %q, want single words", word)
		}
	}
	if m.Header != "" {
		if err := checkHeaders([]string{m.Header}); err != nil {
			return err
		}
	}
	if m.Pointer != "" {
		return checkPointer(m.Pointer)
	}
	return nil
}

// checkNotActed checks the statuses that prove that the API has done nothing. It refuses those that can follow an effect: a time-out (408), a conflict,
// perhaps with an earlier send (409), and a client that left (499).
func checkNotActed(p *Profile) error {
	for _, status := range slices.Concat(p.NotActed.Again, p.NotActed.Stop) {
		if status < 400 || status > 499 || slices.Contains([]int{408, 409, 499}, status) {
			return fmt.Errorf("%d does not prove that nothing was done; want 4xx, and neither 408, 409 nor 499", status)
		}
	}
	return nil
}

// checkOwn checks the statuses that are the API's own answer even with an HTML page or without a body. It refuses those that are never a final answer: a
// client sends again after them.
func checkOwn(p *Profile) error {
	for i, status := range p.Own.Bare {
		waits := slices.Contains([]int{408, 409, 421, 423, 424, 425, 429, 499}, status)
		switch {
		case status < 400 || status > 499 || waits:
			return fmt.Errorf("bare: %d is not final by its status; want 4xx, and neither 408, 409, 421, 423, 424, 425, 429 nor 499", status)
		case slices.Contains(p.Own.Bare[:i], status):
			return fmt.Errorf("bare: %d is there twice", status)
		}
	}
	return nil
}

// checkShouldRetry checks the header by which an API advises for or against another send, and its two values. One of the two at least must be set, and so they
// must differ.
func checkShouldRetry(p *Profile) error {
	s := p.ShouldRetry
	switch {
	case s.Absent == Yes:
		return errors.New("absent: a header that is not there cannot advise another attempt; want no, or leave it out")
	case s.Yes == s.No:
		return errors.New("want another value for yes than for no")
	case s.Yes != strings.ToLower(s.Yes) || s.No != strings.ToLower(s.No):
		return errors.New("want values in lower case, as answers are compared")
	}
	return checkHeaders([]string{s.Header})
}

// checkHints checks the places in which the API says how long to wait: each has a unit, and either a header or a JSON pointer.
func checkHints(p *Profile) error {
	for _, hint := range p.RetryAfter {
		if hint.Unit != HTTPDelay && hint.Unit != Milliseconds {
			return fmt.Errorf("unit: %q, want http or ms", hint.Unit)
		}
		if (hint.Header == "") == (hint.Pointer == "") {
			return errors.New("want a header or a pointer, not both")
		}
		if hint.Pointer != "" {
			if err := checkPointer(hint.Pointer); err != nil {
				return err
			}
			continue
		}
		if err := checkHeaders([]string{hint.Header}); err != nil {
			return err
		}
	}
	return nil
}

// checkMinDelay checks the bounds of the shortest pause between two sends.
func checkMinDelay(p *Profile) error {
	if p.MinDelay < 0 || p.MinDelay > minDelayMax {
		return fmt.Errorf("%v, want at most %v", spanText(p.MinDelay), spanText(minDelayMax))
	}
	return nil
}

// checkAll checks each fact of p that is set, and returns the first error: the name of the fact and what is wrong. A file is checked by other rules: see
// checkTogether.
func checkAll(p *Profile) error {
	for _, f := range facts() { // f.part returns a pointer to the fact's field of p
		check := f.check
		switch f.name {
		case "window":
			continue // its bounds are for the authors of files; a program may set its own
		case "token":
			check = checkToken // Config.Token of the client may make the request
		}
		if reflect.ValueOf(f.part(p)).Elem().IsZero() {
			continue
		}
		if err := check(p); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return checkInHeader(p)
}

// checkTogether checks the rules that involve more than one fact, for a profile of a file. An assumption must not pass for a promise of the API, or allow long
// keys. A lookup reads the answers of already_done; where a weak source states these, they were moved to Unclear.
func checkTogether(p *Profile) error {
	assumed := func(field string) bool { return p.Sources[field].Confidence == Assumed }
	switch {
	case assumed("Window") && p.Window.Published == Yes:
		return errors.New("window: published is yes, but the source is an assumption")
	case assumed("Key") && p.Key.MaxBytes > keyBytesMax:
		return fmt.Errorf("key: max_bytes: %d that nobody has said, want at most %d", p.Key.MaxBytes, keyBytesMax)
	case p.Lookup != nil && len(p.AlreadyDone) == 0:
		return errors.New("lookup: it reads answers of already_done, which are not known well enough")
	}
	return cmp.Or(checkInHeader(p), checkBesideCarrier(p))
}

// checkInHeader refuses facts that need a key in a header (its encoding, a token of the server, the time of the first send, which travels in a header of its
// own) if the key travels elsewhere.
func checkInHeader(p *Profile) error {
	inHeader := p.Carrier.Place == Header
	switch {
	case p.Encoding == SFString && !inHeader:
		return errors.New("encoding: sf-string is a spelling in headers, and the carrier is none")
	case p.Token != nil && !inHeader:
		return errors.New("token: it travels in a header, and the carrier is none")
	case p.FirstSent != "" && (!inHeader || strings.EqualFold(p.FirstSent, p.Carrier.Name)):
		return errors.New("first_sent: it travels in a header beside that of the key, and the carrier is none, or is the same")
	}
	return nil
}

// checkBesideCarrier refuses facts that contradict the carrier, the place in which the key travels.
func checkBesideCarrier(p *Profile) error {
	lacks := func(format BodyFormat) bool {
		return len(p.Body.Formats) > 0 && !slices.Contains(p.Body.Formats, format)
	}
	switch {
	case p.Carrier.Place == Form && lacks(FormBody), p.Carrier.Place == Body && lacks(JSONBody):
		return fmt.Errorf("body: formats: the key travels in %s, which none of them is", p.Carrier)
	case p.Carrier.Place == Nowhere && (len(p.Stored.Client) > 0 || len(p.Replay) > 0):
		return errors.New("carrier: without a key there is no answer that is stored under it; leave stored.client and replay out")
	}
	return nil
}
