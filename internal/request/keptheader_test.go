package request

import (
	"net/http"
	"strings"
	"testing"
)

// TestKeptHeaderCleansURLsEverywhere: a credential in a URL is left out of any header of an answer, whether the URL is the whole
// value or stands among other text; what is no credential stays, byte for byte.
func TestKeptHeaderCleansURLsEverywhere(t *testing.T) {
	t.Parallel()
	s := &Secrets{Parameters: []string{"ticket"}}
	for _, r := range []struct{ name, value, want string }{
		{"Operation-Location", "https://h/op?id=1&sig=SECRET", "https://h/op?id=1"},
		{"Azure-AsyncOperation", "https://h/op?ticket=SECRET", "https://h/op"},
		{"X-Status-URL", "https://u:SECRET@h/op", "https://h/op"},
		{"Content-Location", "/op?access_token=SECRET more", "/op"},
		{"Link", `<https://h/a?page=2&access_token=SECRET>; rel="next"`, `<https://h/a?page=2>; rel="next"`},
		{"Link", `<https://h/a?x=1>; rel="prev", <https://u:SECRET@h/b?sig=SECRET#sig=SECRET>; rel="next"`, `<https://h/a?x=1>; rel="prev", <https://h/b>; rel="next"`},
		{"Link", `<https://h/a?x=1 &sig=SECRET>`, `<https://h/a?x=1 >`},
		{"Refresh", "5; url=https://h/a?sig=SECRET", "5; url=https://h/a"},
		{"Refresh", "5;URL='https://h/a?x=1&sig=SECRET'", "5;URL='https://h/a?x=1'"},
		{"Report-To", `{"endpoints":[{"url":"https://h/r?s=1&jwt=SECRET"}]}`, `{"endpoints":[{"url":"https://h/r?s=1"}]}`},
		{"X-Next", "https://h/a?x=1,https://h/b?sig=SECRET", "https://h/a?x=1,https://h/b"},
		{"X-Next", "https://h/a?x=1, y&sig=SECRET", "https://h/a?x=1, y"},
		{"Link", `<https://h/a?page=2#top>; title="is it? yes & no"`, `<https://h/a?page=2#top>; title="is it? yes & no"`},
		{"ETag", `W/"a?b#c@d"`, `W/"a?b#c@d"`},
		{"From", "ops@example.com", "ops@example.com"},
		{"Content-Disposition", `attachment; filename="what now?.pdf"`, `attachment; filename="what now?.pdf"`},
	} {
		h := http.Header{r.name: {"first", r.value}}
		kept := s.KeptHeader(h)
		if got := strings.Join(kept[r.name], "|"); got != "first|"+r.want {
			t.Errorf("%s: %q is kept as %q, want %q", r.name, r.value, got, r.want)
		}
		if h[r.name][1] != r.value {
			t.Errorf("the caller's %s became %q", r.name, h[r.name][1])
		}
	}
}

// FuzzCleanText: a credential of a URL in brackets or quotes, or bare, never stays.
func FuzzCleanText(f *testing.F) {
	f.Add("https://h/a", "x=1", `; rel="next"`)
	f.Fuzz(func(t *testing.T, before, query, after string) {
		const secret = "s3cr3tv4lue"
		s := &Secrets{}
		for _, marks := range []string{"<>", `""`, "''", "  "} {
			text := before + marks[:1] + "https://h/?" + query + "&sig=" + secret + marks[1:] + after
			if got := cleanText(text, s.parameter); strings.Contains(got, secret) {
				t.Errorf("%q is kept as %q", text, got)
			}
		}
	})
}
