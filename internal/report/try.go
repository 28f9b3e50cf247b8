package report

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// tryLines returns the shell lines to show a finding again. The variables to set
// come first, then one curl line for each request of the finding, in order, and last the witness (the requests that count the effects). Keys and references
// end in $RUN, so they are new each time, and credentials are variables ($AUTH_A is the first caller's). Overlapping requests are sent in the background. It
// returns nil if the case found nothing wrong, and for a referee: its requests are a client's.
func tryLines(r *Report, c *Case) []string {
	steps := showing(c)
	origin, err := url.Parse(r.Target)
	if r.Kind == KindReferee || len(steps) == 0 || err != nil || origin.Host == "" {
		return nil
	}
	s := &script{origin: origin.Scheme + "://" + origin.Host, uniques: uniquesOf(steps), variables: map[string]string{}}
	var lines []string
	for i := 0; i < len(steps); {
		line, n := s.step(steps, i)
		lines, i = append(lines, line), i+n
	}
	if c.Witness == Counted || c.Witness == Listed {
		lines = append(lines, s.witness(r.Config["witness"], origin.Host, steps)...)
	}
	return append(s.head(), lines...)
}

// showing returns the exchanges to show the finding, in the order of their start: the marked ones, else all, if these are not too many. It returns none for a case
// without a failure or a warning.
func showing(c *Case) []*Exchange {
	if c.Verdict != Fail && c.Verdict != Warn {
		return nil
	}
	var marked, all []*Exchange
	for i := range c.Exchanges {
		x := &c.Exchanges[i]
		if all = append(all, x); x.Shows {
			marked = append(marked, x)
		}
	}
	if len(marked) == 0 && len(all) <= textExchangesMax {
		marked = all
	}
	slices.SortStableFunc(marked, func(a, b *Exchange) int { return cmp.Compare(a.At, b.At) })
	return marked
}

// runDigits is the length of $RUN. It replaces the end of a key.
const runDigits = 10

// uniquesOf matches the keys and references of these exchanges, in either case:
// those with runDigits hexadecimal digits at the end, and 6 other characters at least before them. Nil: there are none.
func uniquesOf(steps []*Exchange) *regexp.Regexp {
	unique := regexp.MustCompile(`^[0-9A-Za-z-]{6,}[0-9a-fA-F]{10}$`)
	uuid := regexp.MustCompile(`(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	var list []string
	for _, x := range steps {
		for _, text := range append(uuid.FindAllString(x.Key, -1), x.Ref) {
			if text = strings.ToLower(text); unique.MatchString(text) && !slices.Contains(list, text) {
				list = append(list, text)
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	return regexp.MustCompile(`(?i)` + strings.Join(list, "|")) // letters, digits and - only
}

// script is the lines of one finding in the making.
type script struct {
	origin    string
	uniques   *regexp.Regexp
	run       bool              // $RUN is used
	running   bool              // something is in the background
	variables map[string]string // the meaning of each variable, by name
	names     []string          // of the variables, in order
}

// head returns the first lines of a shell script: they set the variables that the other lines use, or fail with a text about the missing one. s.run: $RUN is
// used. s.names has the other variables in the order of their use, and s.variables their texts.
func (s *script) head() []string {
	var lines []string
	if s.run {
		lines = append(lines, "RUN=$(date +%s)")
	}
	for _, name := range s.names {
		lines = append(lines, `: "${`+name+`:?`+s.variables[name]+`}"`)
	}
	return lines
}

// word returns a text as one word of the shell. $RUN is a Unix time, which has runDigits digits. In each key and each reference in the text, $RUN takes the
// place of the last runDigits digits, so that each run of the script has new ones. s.run notes that $RUN has to be set.
func (s *script) word(text string) string {
	var b strings.Builder
	for s.uniques != nil {
		at := s.uniques.FindStringIndex(text)
		if at == nil {
			break
		}
		b.WriteString(shellWord(text[:at[1]-runDigits]) + `"$RUN"`)
		text, s.run = text[at[1]:], true
	}
	if text != "" || b.Len() == 0 {
		b.WriteString(shellWord(text))
	}
	return b.String()
}

// secret returns the word of a header with a credential: a variable in its place,
// with A at the end for the first caller, and B for the second.
func (s *script) secret(caller string) func(name, value string) string {
	return func(name, _ string) string {
		letter, flag := "A", "--header"
		if caller == callerSecond {
			letter, flag = "B", "--as"
		}
		variable := "AUTH"
		if !strings.EqualFold(name, "Authorization") {
			variable = strings.Map(upperWord, name)
		}
		variable += "_" + letter
		if _, known := s.variables[variable]; !known {
			s.names = append(s.names, variable)
			s.variables[variable] = "the value of " + strings.Map(plainWord, name) + " that was given with " + flag
		}
		return `"` + strings.Map(plainWord, name) + ": $" + variable + `"`
	}
}

const callerSecond = "second"

// upperWord maps a rune of a header's name to one of a shell variable's name.
func upperWord(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z':
		return r - 'a' + 'A'
	case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return r
	}
	return '_'
}

// plainWord keeps runes without a meaning between double quotes, and maps the others to _.
func plainWord(r rune) rune {
	if needsQuotes(r) {
		return '_'
	}
	return r
}

// foldMin is the least number of times for the same request to become one line.
const foldMin = 4

// step returns the line for the exchange at i, and the number n of its exchanges:
// the same request several times in a row is one line. An exchange overlapped by a later one runs in the background (s.running: some do), until a "wait" at a
// time without open exchanges.
func (s *script) step(steps []*Exchange, i int) (line string, n int) {
	line = s.request(steps[i])
	behind := overlapping(steps, i)
	n = s.repeats(steps, i, line, behind)
	next := i + n
	// No earlier exchange goes on when the next one begins.
	idle := next == len(steps) || !slices.ContainsFunc(steps[:next], func(x *Exchange) bool { return x.At+x.Took > steps[next].At })
	then, again := "", ""
	switch {
	case idle && (behind || s.running):
		then = "wait"
	case behind && next < len(steps):
		then = pauseOf(steps[next].At - steps[next-1].At)
	}
	s.running = (behind || s.running) && !idle
	if !behind && n > 1 {
		again = pauseOf((steps[next-1].At - steps[i].At) / float64(n-1)) // only the whole time counts
	}
	return spell(line, n, behind, again, then), n
}

// repeats returns the number of equal requests from i on that one line, a loop, can send. It is 1 if they are fewer than foldMin. behind tells if the
// requests run in the background: a loop has only such requests, or only others. line is the command for the request at i.
func (s *script) repeats(steps []*Exchange, i int, line string, behind bool) (n int) {
	for n = 1; i+n < len(steps) && overlapping(steps, i+n-1) == behind && s.request(steps[i+n]) == line; n++ {
		if !behind && overlapping(steps, i+n) { // that one has to run in the background
			break
		}
	}
	if n < foldMin {
		return 1
	}
	return n
}

// spell puts a command into a loop of n, and into the background if behind is set. again, such as a pause, stands between the rounds, and then stands behind all of
// them; both may be empty. A comment stays as it is.
func spell(line string, n int, behind bool, again, then string) string {
	if strings.HasPrefix(line, "#") {
		return line
	}
	end := "; "
	if behind {
		line, end = line+" &", " "
	}
	if n > 1 {
		if again != "" {
			again = "; " + again
		}
		line = fmt.Sprintf("for i in $(seq %d); do %s%s%s done", n, line, again, strings.TrimSuffix(end, " "))
		end = "; "
	}
	if then != "" {
		line += end + then
	}
	return line
}

// overlapping reports whether a later exchange began before the end of this one.
func overlapping(steps []*Exchange, i int) bool {
	end := steps[i].At + steps[i].Took
	return slices.ContainsFunc(steps[i+1:], func(x *Exchange) bool { return x.At < end })
}

// pauseOf returns the command to wait for ms milliseconds; "" for less than ten.
func pauseOf(ms float64) string {
	if ms < 10 {
		return ""
	}
	return fmt.Sprintf("sleep %.2f", ms/1000)
}

// request returns the line with curl that sends the request of an exchange again. It is a comment if the report does not have the whole body. A long run
// of one character, cut out of the body for the report (m.Run), is made anew.
func (s *script) request(x *Exchange) string {
	m := x.Request
	if m == nil {
		m = &Message{}
	}
	c := curl{method: x.Method, url: s.origin + x.URL, header: withoutOurs(m.wireHeader()), word: s.word, secret: s.secret(x.Caller)}
	if strings.Contains(x.Error, "the client left") { // the case broke the request off: curl must, too, after the same time
		c.options = fmt.Sprintf(" -m %.2f", max(x.Took/1000, 0.05))
	}
	before := ""
	switch missing := m.BodyBytes - int64(len(m.Body)); {
	case m.Run != nil && m.Run.valid(len(m.Body)) && missing == int64(m.Run.Count*len(m.Run.Of)):
		before = s.filled(m) + " | "
		c.data = " --data-binary @-"
	case missing != 0:
		return oneLine(fmt.Sprintf("# not kept whole, a body of %d bytes: %s %s", m.BodyBytes, x.Method, x.URL))
	case m.Body != "":
		c.data = " --data-raw " + s.word(m.Body)
	}
	return before + c.line()
}

// wireHeader returns the header as it was sent. Values that are not valid text come from m.HeaderBytes.
func (m *Message) wireHeader() map[string][]string {
	if m.HeaderBytes == nil {
		return m.Header
	}
	header := maps.Clone(m.Header)
	for name, values := range m.HeaderBytes {
		header[name] = nil
		for _, value := range values {
			header[name] = append(header[name], string(value))
		}
	}
	return header
}

// withoutOurs returns the header without the fields that the suite adds to every request, and those that curl adds by itself.
func withoutOurs(header map[string][]string) map[string][]string {
	kept := maps.Clone(header)
	maps.DeleteFunc(kept, func(name string, values []string) bool {
		value := strings.Join(values, "")
		return strings.EqualFold(name, "Accept") && value == "*/*" ||
			strings.EqualFold(name, "User-Agent") && strings.HasPrefix(value, "oncehttp-check/")
	})
	return kept
}

// valid reports whether the run can be put back into a body of this length in bytes. Its byte must have no meaning for a shell or for tr.
func (run *Run) valid(body int) bool {
	return run.At >= 0 && run.At <= body && run.Count > 0 && len(run.Of) == 1 && !needsQuotes(rune(run.Of[0]))
}

// filled returns a shell command that prints a message's body whose long run of equal bytes was cut out for the report: the run is made anew.
func (s *script) filled(m *Message) string {
	fill := fmt.Sprintf("head -c %d /dev/zero | tr '\\0' %s", m.Run.Count, shellWord(m.Run.Of))
	return "{ printf %s " + s.word(m.Body[:m.Run.At]) + "; " + fill + "; printf %s " + s.word(m.Body[m.Run.At:]) + "; }"
}

// witness returns one command for each reference in the exchanges, to count its effects. template is the address of the server that counts effects,
// with {ref} for the reference, and maybe with # and a pointer to the count, which is left out. Credentials go only to the tested server, host. It
// returns nothing without a usable address.
func (s *script) witness(template, host string, steps []*Exchange) []string {
	address, _, _ := strings.Cut(template, "#")
	at, err := url.Parse(address)
	if address == "" || err != nil {
		return nil
	}
	header := map[string][]string{}
	for name, values := range headerOf(steps[0]) {
		if at.Host == host && SecretName(name) {
			header[name] = values
		}
	}
	var lines []string
	for _, x := range steps {
		c := curl{method: "GET", url: strings.ReplaceAll(address, "{ref}", x.Ref), header: header, word: s.word, secret: s.secret("")}
		if line := c.line(); x.Ref != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// headerOf returns the header of the request; nil if the request was not kept.
func headerOf(x *Exchange) map[string][]string {
	if x.Request == nil {
		return nil
	}
	return x.Request.Header
}
