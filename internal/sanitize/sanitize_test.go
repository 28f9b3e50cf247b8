package sanitize_test

import (
	"context"
	"errors"
	"io"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/oncehttp/oncehttp/internal/sanitize"
)

// TestTextLosesQueriesCredentialsAndQuotes: what could hold a credential or bytes of an answer is gone, the
// rest stays.
func TestTextLosesQueriesCredentialsAndQuotes(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"connection refused":                        "connection refused",
		`malformed chunk "s3cret"`:                  `malformed chunk "…"`,
		`a "b\"c" d "e`:                             `a "…" d "…"`,
		"get https://u:pw@h.example/p?sig=s failed": "get https://h.example/… failed",
		"at /p?sig=s":                               "at /p…",
		"two\r\nlines":                              "two lines",
	} {
		if got := sanitize.Text(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	if got := sanitize.Text(strings.Repeat("é", 400)); len(got) > 310 || !strings.HasSuffix(got, "…") {
		t.Errorf("a long text is kept with %d bytes", len(got))
	}
}

// TestErrorKeepsItsIdentity: errors.Is finds what it found before, and the URL of a url.Error is gone.
func TestErrorKeepsItsIdentity(t *testing.T) {
	t.Parallel()
	err := sanitize.Error(&url.Error{Op: "Get", URL: "https://h/?sig=s3cret", Err: io.ErrUnexpectedEOF})
	if err == nil || !errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("%v", err)
	}
	sibling := &url.Error{Op: "Get", URL: "https://h/?sig=s3cret", Err: io.ErrUnexpectedEOF}
	ctx, cancel := context.WithCancelCause(t.Context())
	if err := sanitize.Cause(ctx); err != nil {
		t.Errorf("before its end a context has the cause %v", err)
	}
	cancel(sibling)
	var found *url.Error
	err = sanitize.Cause(ctx)
	if !errors.Is(err, sibling) || !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || !errors.As(err, &found) || found != sibling || err.Error() != "unexpected EOF" {
		t.Errorf("of the cause became %v, as %v", err, found)
	}
	quoted := errors.Join(io.EOF, errors.New(`bad "s3cret"`))
	if err := sanitize.Error(quoted); !errors.Is(err, io.EOF) || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("%v", err)
	}
	if sanitize.Error(nil) != nil {
		t.Error("nil became an error")
	}
}

// FuzzText: whatever stood in double quotes or behind a question mark is gone, the text is one line of
// bounded length, and cleaning it again changes nothing that could still leak.
func FuzzText(f *testing.F) {
	f.Add("get https://u:pw@h/p?sig= failed", "s3cret")
	f.Add(`a \" b `, "x")
	f.Fuzz(func(t *testing.T, before, secret string) {
		if len(secret) < 4 || strings.ContainsAny(secret, "\"\\ …\t\r\n") || strings.Contains(before, secret) || strings.ContainsAny(before, "\"\\") || !utf8.ValidString(before+secret) {
			return
		}
		for _, leak := range []string{before + `"` + secret + `"`, before + " /p?q=" + secret, before + " https://u:" + secret + "@h/p"} {
			got := sanitize.Text(leak)
			if strings.ContainsAny(got, "\r\n") || len(got) > 310 {
				t.Errorf("%q became %q", leak, got)
			}
			if strings.Contains(got, secret) && !strings.ContainsAny(secret, "/?@:") {
				t.Errorf("%q became %q, which still holds %q", leak, got, secret)
			}
		}
	})
}
