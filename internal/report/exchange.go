package report

import (
	"fmt"
	"strconv"
	"strings"
)

// exchangeLines returns the exchanges of a case, one line each. Consecutive
// requests with the same look and the same answer are one line.
func exchangeLines(list []Exchange) []string {
	var lines []string
	for i := 0; i < len(list); {
		var before *Exchange
		if i > 0 {
			before = &list[i-1]
		}
		n := 1
		for i+n < len(list) && alike(&list[i], &list[i+n]) {
			n++
		}
		lines = append(lines, exchangeLine(&list[i], before, n))
		i += n
	}
	return lines
}

// alike reports whether two exchanges (a request with its answer) are equal for a reader: they may differ in their times, and in
// the connection on which a drawing shows them.
func alike(a, b *Exchange) bool {
	body := func(m *Message) string {
		if m == nil {
			return ""
		}
		return m.Body
	}
	return a.Method == b.Method && a.URL == b.URL && a.Key == b.Key && a.KeySent == b.KeySent && a.Caller == b.Caller &&
		answer(a) == answer(b) && a.Note == b.Note && a.Effects == b.Effects &&
		body(a.Request) == body(b.Request) && body(a.Response) == body(b.Response)
}

// exchangeLine returns one exchange, or n of the same look, in one line: the lane (a name for the connection that sent it), the request, the answer, the
// effects seen by the witness (the one who counts them), and the note. before is the exchange before it, for "same key"; nil for the first.
func exchangeLine(x, before *Exchange, n int) string {
	parts := nonEmpty(x.Lane, x.Method+" "+x.URL, callerNote(x), keyNote(x, before))
	if x.Request != nil && x.Request.Body != "" {
		parts = append(parts, clip(x.Request.Body, textBodyMax))
	}
	came := "→ " + answer(x)
	if n > 1 {
		came += fmt.Sprintf(" ×%d", n)
	}
	parts = append(parts, came)
	if x.Response != nil && x.Response.Body != "" {
		parts = append(parts, clip(x.Response.Body, textBodyMax))
	}
	if x.Effects != "" {
		parts = append(parts, "["+x.Effects+"]")
	}
	if x.Note != "" {
		parts = append(parts, "← "+x.Note)
	}
	return strings.Join(parts, "  ")
}

// callerNote names the sender of a request, if it is not the first caller: the sender's credential is not in the report. Caller is "" for the first caller,
// "second", or "none" for a request without credentials.
func callerNote(x *Exchange) string {
	switch x.Caller {
	case "":
		return ""
	case "none":
		return "(without credentials)"
	}
	return "(as the " + x.Caller + " caller)"
}

// keyNote says in a few words which key an exchange has sent, in relation to that of the exchange before; before is nil for the first. x.KeySent: a key was
// sent, maybe an empty one.
func keyNote(x, before *Exchange) string {
	switch {
	case x.Key == "" && !x.KeySent:
		return "no key"
	case x.Key == "":
		return "empty key"
	case before != nil && before.Key == x.Key:
		return "same key"
	}
	return "key " + clip(x.Key, 40)
}

// answer returns the status and the error, or "no answer" if there is neither.
func answer(x *Exchange) string {
	switch {
	case x.Status != 0 && x.Error != "":
		return strconv.Itoa(x.Status) + ", then " + x.Error
	case x.Status != 0:
		return strconv.Itoa(x.Status)
	case x.Error != "":
		return x.Error
	}
	return "no answer"
}
