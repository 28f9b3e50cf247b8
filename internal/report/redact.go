package report

import (
	"encoding/base64"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// redacted replaces a secret.
const redacted = "[redacted]"

// secretBytesMin is the shortest length of a secret searched for outside its own
// place, in bytes: replacing a short one ("bob") everywhere would garble the report and
// hide nothing.
const secretBytesMin = 8

// SecretName reports whether a header, a query parameter or a JSON member of
// this name is taken to hold a credential. An idempotency key never is, nor is
// Signature-Input: it lists the signed parts.
func SecretName(name string) bool {
	plain := strings.NewReplacer("-", "", "_", "", ".", "", " ", "").Replace(strings.ToLower(name))
	if strings.Contains(plain, "idempotency") || plain == "signatureinput" { // RFC 9421: the signed parts, and no signature
		return false
	}
	if plain == "auth" || strings.HasPrefix(plain, "xauth") {
		return true
	}
	for _, part := range []string{"authorization", "cookie", "token", "secret", "signature", "password",
		"passwd", "apikey", "accesskey", "privatekey", "credential", "session"} {
		if strings.Contains(plain, part) {
			return true
		}
	}
	return false
}

// redactor takes secrets out of the texts of one report.
type redactor struct {
	known                          *strings.Replacer // values seen in their own place
	labels                         map[string]string // the replacements of headers' values, by name and value
	userinfo, header, member, pair *regexp.Regexp
	option                         *regexp.Regexp
}

// newRedactor makes the redactor for a report: it knows the credentials in
// the report's headers, and finds others by the names beside them.
func newRedactor(r *Report) *redactor {
	return &redactor{
		known:    knownSecrets(r),
		labels:   labelsOf(r),
		userinfo: regexp.MustCompile(`://[^\s/@'"?#]+@`),
		// A header in prose or in a curl line; '\'' is a quote inside a shell word.
		header: regexp.MustCompile(`([A-Za-z0-9_-]+)(\s*:\s*)([^'\r\n]+(?:'\\''[^'\r\n]*)*)`),
		// A header in a shell line, unless its value is a variable.
		option: regexp.MustCompile(`([A-Za-z0-9_-]+)(\s*:\s*)([^\s$?'][^'\r\n]*(?:'\\''[^'\r\n]*)*)`),
		// A JSON member; the string may have been cut off.
		member: regexp.MustCompile(`"((?:[^"\\]|\\.)*)"(\s*:\s*)("(?:[^"\\]|\\.)*"?|-?[0-9][^\s,}\]]*)`),
		// A query parameter or form field.
		pair: regexp.MustCompile(`([A-Za-z0-9_.%\[\]-]+)(=)([^&\s'"#;]+)`),
	}
}

// withoutSecrets returns a deep copy of r without credentials.
func withoutSecrets(r *Report) *Report {
	red := newRedactor(r)
	cp := *r
	cp.Target, cp.Name = red.url(r.Target), red.url(r.Name)
	cp.Config = make(map[string]string, len(r.Config))
	for name, value := range r.Config {
		if SecretName(name) {
			value = redacted
		}
		cp.Config[name] = red.text(value)
	}
	cp.Cases = slices.Clone(r.Cases)
	for i := range cp.Cases {
		red.redactCase(&cp.Cases[i])
	}
	return &cp
}

// redactCase takes the credentials out of a case. It changes no slice shared with
// the caller's report. The rule, the impact and the fix are the suite's own words. A line to
// try keeps headers with a variable as the value: it stands for the credential.
func (red *redactor) redactCase(c *Case) {
	for _, text := range []*string{&c.Expected, &c.Actual, &c.Reason, &c.Effects, &c.Odds} {
		*text = red.text(*text)
	}
	c.Try = slices.Clone(c.Try)
	for i, line := range c.Try {
		line = replaceNamed(red.member, line, `"`, `"`+redacted+`"`)
		c.Try[i] = replaceNamed(red.option, red.url(line), "", redacted)
	}
	c.Findings = slices.Clone(c.Findings)
	for i := range c.Findings {
		c.Findings[i].Text = red.text(c.Findings[i].Text)
	}
	c.Exchanges = slices.Clone(c.Exchanges)
	for i := range c.Exchanges {
		x := &c.Exchanges[i]
		x.URL = red.url(x.URL)
		x.Error, x.Note, x.Effects = red.text(x.Error), red.text(x.Note), red.text(x.Effects)
		x.Request, x.Response = red.message(x.Request), red.message(x.Response)
	}
}

// message returns a copy of a message without credentials; nil for nil. m.HeaderBytes has the values of fields again that are no UTF-8.
func (red *redactor) message(m *Message) *Message {
	if m == nil {
		return nil
	}
	cp := &Message{BodyBytes: m.BodyBytes, Body: red.text(m.Body), Header: make(map[string][]string, len(m.Header))}
	for name, values := range m.Header {
		values = slices.Clone(values)
		for i := range values {
			if SecretName(name) {
				values[i] = red.label(name, values[i])
			} else {
				values[i] = red.url(values[i])
			}
		}
		cp.Header[name] = values
	}
	for name, values := range m.HeaderBytes {
		if SecretName(name) {
			continue // its labels are in Header
		}
		if cp.HeaderBytes == nil {
			cp.HeaderBytes = map[string][][]byte{}
		}
		for _, value := range values {
			cp.HeaderBytes[name] = append(cp.HeaderBytes[name], []byte(red.url(string(value))))
		}
	}
	return cp
}

// labelsOf gives the values of a header different labels, A to Z, if the requests of the report have different values. A reader has to see a difference of two
// requests in a credential, though not the credential. A value after the 26th has none, and is shown like any other credential. The keys are the name in lower case,
// a zero byte and the value.
func labelsOf(r *Report) map[string]string {
	seen := map[string][]string{} // values by lower-case name, in order
	for i := range r.Cases {
		for j := range r.Cases[i].Exchanges {
			for name, values := range headerOf(&r.Cases[i].Exchanges[j]) {
				name = strings.ToLower(name)
				for _, value := range values {
					if SecretName(name) && !slices.Contains(seen[name], value) {
						seen[name] = append(seen[name], value)
					}
				}
			}
		}
	}
	labels := map[string]string{}
	for name, values := range seen {
		for i, value := range values[:min(len(values), 26)] {
			if len(values) > 1 && value != redacted {
				labels[name+"\x00"+value] = "[redacted " + string(rune('A'+i)) + "]"
			}
		}
	}
	return labels
}

// label returns the text shown instead of the value of a credential. If a report has several values of one header, each has its own letter, so that a
// reader can tell them apart.
func (red *redactor) label(name, value string) string {
	if label, several := red.labels[strings.ToLower(name)+"\x00"+value]; several {
		return label
	}
	if strings.HasPrefix(value, "[redacted ") && len(value) == len("[redacted A]") {
		return value // by an earlier writer
	}
	return redacted
}

// text takes secrets out of a text of any kind. JSON members go before headers,
// because a header's value runs to the end of its line.
func (red *redactor) text(s string) string {
	if s == "" {
		return ""
	}
	s = replaceNamed(red.member, s, `"`, `"`+redacted+`"`)
	s = red.url(s)
	return replaceNamed(red.header, s, "", redacted)
}

// url takes userinfo, secret parameters and known secrets out of s; it leaves
// colons alone, because "token-service:8080" is a host and no header.
func (red *redactor) url(s string) string {
	s = red.userinfo.ReplaceAllString(s, "://"+redacted+"@")
	s = replaceNamed(red.pair, s, "", redacted)
	return red.known.Replace(s)
}

// replaceNamed replaces the value (group 3) of each match if the name (group 1)
// looks like a secret's. Group 2 is the text between, and quote stands around
// the name. After a match with an innocent name, the search goes on behind the
// name, since the value may hold another ("note: Authorization: x").
func replaceNamed(re *regexp.Regexp, s, quote, with string) string {
	var b strings.Builder
	for {
		at := re.FindStringSubmatchIndex(s)
		if at == nil {
			b.WriteString(s)
			return b.String()
		}
		if name := s[at[2]:at[3]]; SecretName(name) {
			b.WriteString(s[:at[0]] + quote + name + quote + s[at[4]:at[5]] + with)
			s = s[at[1]:]
			continue
		}
		b.WriteString(s[:at[5]])
		s = s[at[5]:]
	}
}

// knownSecrets collects the values of all headers with names like those of
// secrets, with their parts. So a secret echoed by a server is found, too.
func knownSecrets(r *Report) *strings.Replacer {
	found := map[string]bool{}
	for i := range r.Cases {
		for _, x := range r.Cases[i].Exchanges {
			for _, m := range []*Message{x.Request, x.Response} {
				if m == nil {
					continue
				}
				for _, header := range []map[string][]string{m.Header, m.wireHeader()} {
					for name, values := range header {
						collect(found, name, hidden(name, values, m.Body)...)
					}
				}
			}
		}
	}
	for name, value := range r.Config {
		collect(found, name, value)
		if header, secret, ok := strings.Cut(value, ":"); ok {
			collect(found, header, strings.TrimSpace(secret))
		}
	}
	secrets := slices.Collect(maps.Keys(found))
	slices.SortFunc(secrets, func(a, b string) int { // longest first: a part must not break its whole
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	pairs := make([]string, 0, 2*len(secrets))
	for _, secret := range secrets {
		pairs = append(pairs, secret, redacted)
	}
	return strings.NewReplacer(pairs...)
}

// hidden returns the values of a header that its answer keeps to itself, and so may be secret. It leaves out the values of a Set-Cookie shown openly by the body of
// the same answer, such as the id of a created resource.
func hidden(name string, values []string, body string) []string {
	if !strings.EqualFold(name, "Set-Cookie") {
		return values
	}
	return slices.DeleteFunc(slices.Clone(values), func(value string) bool {
		pair, _, _ := strings.Cut(value, ";")
		_, secret, found := strings.Cut(pair, "=")
		return found && secret != "" && strings.Contains(body, `"`+strings.TrimSpace(secret)+`"`)
	})
}

// collect adds to found the secrets in the values of a header, if its name is
// a secret's (see SecretName): the whole value, what follows a scheme such as Bearer, the password of Basic, and the values of pairs. A short one is left
// out: it would be found by chance in many places.
func collect(found map[string]bool, name string, values ...string) {
	if !SecretName(name) {
		return
	}
	add := func(secret string) {
		if len(secret) >= secretBytesMin {
			found[secret] = true
		}
	}
	for _, value := range values {
		add(value)
		if scheme, rest, ok := strings.Cut(value, " "); ok && !strings.Contains(scheme, "=") {
			add(rest)
			if plain, err := base64.StdEncoding.DecodeString(rest); err == nil && strings.EqualFold(scheme, "Basic") {
				_, password, _ := strings.Cut(string(plain), ":")
				add(password)
			}
		}
		pairs := strings.Split(value, ";")
		if strings.EqualFold(name, "Set-Cookie") {
			pairs = pairs[:1] // the rest are attributes: Path, Max-Age, …
		}
		for _, pair := range pairs {
			if _, secret, ok := strings.Cut(pair, "="); ok {
				add(strings.TrimSpace(secret))
			}
		}
	}
}
