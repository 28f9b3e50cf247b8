package report

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// oneLine makes s safe to print inside one line of a terminal or a log. A text
// from a server under test may hold escape sequences, line breaks and
// marks for the reading direction, and none of them may act.
func oneLine(s string) string {
	if !strings.ContainsFunc(s, acts) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case acts(r) && r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case acts(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// acts reports whether a terminal acts on r instead of showing it.
func acts(r rune) bool {
	return unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Bidi_Control, r) ||
		unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)
}

// clip shortens s to at most n runes, the last of them an ellipsis if anything
// was cut. It never cuts inside a rune.
func clip(s string, n int) string {
	if len(s) <= n || utf8.RuneCountInString(s) <= n {
		return s
	}
	runes := 0
	for i := range s {
		if runes++; runes == n {
			return s[:i] + "…"
		}
	}
	return s
}

// pad fills s with spaces up to n runes.
func pad(s string, n int) string {
	return s + strings.Repeat(" ", max(0, n-utf8.RuneCountInString(s)))
}

// printable drops the characters that XML 1.0 forbids, and with them the escapes that control a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case acts(r), r == 0xFFFE, r == 0xFFFF:
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// duration shows milliseconds to a person: "840 µs", "12 ms", "6.1 s", "2m05s".
func duration(ms float64) string {
	switch {
	case ms <= 0:
		return "0 ms"
	case ms < 1:
		return fmt.Sprintf("%.0f µs", ms*1000)
	case ms < 10:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 1000:
		return fmt.Sprintf("%.0f ms", ms)
	case ms < 60_000:
		return fmt.Sprintf("%.1f s", ms/1000)
	}
	s := int64(ms / 1000)
	return fmt.Sprintf("%dm%02ds", s/60, s%60)
}

// plural returns "1 case", "2 cases".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
