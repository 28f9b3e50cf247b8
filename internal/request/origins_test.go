package request

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// TestOrigins: an entry allows its origin in each spelling that a URL may have, and no neighbour of it.
func TestOrigins(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]struct{ allows, refuses []string }{
		"https://api.example.com": {
			[]string{"https://api.example.com/", "HTTPS://API.Example.com:443/x?y", "https://user:pw@api.example.com"},
			[]string{
				"http://api.example.com", "https://api.example.com:8443", "https://example.com", "https://a.api.example.com", "https://xapi.example.com",
				"https://api.example.com.evil.test", "https://api.example.com.", "https://evil.test/https://api.example.com", "https://api.example.com@evil.test",
			},
		},
		"HTTPS://API.Example.com:443":    {[]string{"https://api.example.com"}, []string{"http://api.example.com:443"}},
		"https://api.example.com:8443":   {[]string{"https://api.example.com:8443"}, []string{"https://api.example.com", "https://api.example.com:84430"}},
		"http://payments.internal":       {[]string{"http://payments.internal:80"}, []string{"https://payments.internal", "https://payments.internal:80"}},
		"https://[2001:db8::1]:8443":     {[]string{"https://[2001:DB8::1]:8443"}, []string{"https://[2001:db8::2]:8443"}},
		"https://*.example.com":          {[]string{"https://eu-1.example.com", "https://A_b.Example.com:443/"}, []string{"https://example.com", "https://a.b.example.com", "https://.example.com", "http://a.example.com", "https://a.example.com:444", "https://a.example.com.evil.test", "https://aexample.com", "https://evil.test/.example.com", "https://*.example.com"}},
		"https://*.shop.example.com:444": {[]string{"https://a.shop.example.com:444"}, []string{"https://a.shop.example.com", "https://a.example.com:444"}},
		"http://127.0.0.1:*":             {[]string{"http://127.0.0.1", "http://127.0.0.1:65535"}, []string{"https://127.0.0.1:80", "http://localhost:80", "http://127.0.0.10:80", "http://[::1]:80"}},
		"http://localhost:*":             {[]string{"http://localhost:1234"}, []string{"http://localhost.evil.test:80", "http://127.0.0.1:1234"}},
		"https://[::1]:*":                {[]string{"https://[::1]:1234"}, []string{"http://[::1]:1234", "https://[::2]:1234"}},
	} {
		o, err := ParseOrigins([]string{entry})
		if err != nil {
			t.Errorf("%s: %v", entry, err)
			continue
		}
		for i, list := range [][]string{want.allows, want.refuses} {
			for _, text := range list {
				u, err := url.Parse(text)
				if err != nil {
					t.Fatal(err)
				}
				if allowed := o.Allows(Origin(u)); allowed != (i == 0) {
					t.Errorf("%s: allows %s: %v", entry, text, allowed)
				}
			}
		}
	}
}

// TestOriginsOfNoURL: what is no origin, as a journal's table may hold it, is not allowed.
func TestOriginsOfNoURL(t *testing.T) {
	t.Parallel()
	o, err := ParseOrigins([]string{"https://api.example.com", "https://*.example.com", "http://127.0.0.1:*"})
	if err != nil {
		t.Fatal(err)
	}
	for _, origin := range []string{
		"", "https://api.example.com", "https://api.example.com:443/", "https://API.example.com:443", "https://evil.test/x.example.com:443", "https://evil.test:1@x.example.com:443",
		"https://a\n.example.com:443", "https://a%2e.example.com:443", "http://127.0.0.1:", "http://127.0.0.1:80@evil.test", "http://127.0.0.1:0", "http://127.0.0.1:99999",
	} {
		if o.Allows(origin) {
			t.Errorf("%q is allowed", origin)
		}
	}
	if none, err := ParseOrigins([]string{}); err != nil || !none.Empty() || none.Allows("https://api.example.com:443") || o.Empty() {
		t.Errorf("an empty list: %v, %v", none, err)
	}
}

// TestOriginsMalformed: an entry that is no origin is refused with its index and the fix, and without what may be a credential.
func TestOriginsMalformed(t *testing.T) {
	t.Parallel()
	for entry, fix := range map[string]string{
		"": "https://api.example.com", "api.example.com": "https://api.example.com", "api.example.com:443": "https://api.example.com", "https://": "a host", "https:api.example.com": "a host", "*": "a host", "https://*": "a host",
		"https://api.*.com": "https://*.example.com", "https://*.*.example.com": "one label", "https://**.example.com": "one label", "https://a*.example.com": "one label", "https://a.example.com,https://b.example.com": "a host",
		"ftp://api.example.com": "https", "https://api.example.com/": `"https://api.example.com"`, "https://API.example.com/v1": `"https://api.example.com"`, "https://api.example.com?x=secret": `"https://api.example.com"`,
		"https://api.example.com#": `"https://api.example.com"`, "https://user:secret@api.example.com": `"https://api.example.com"`, "https://api.example.com:0": "from 1 to 65535", "https://api.example.com:": "from 1 to 65535",
		"https://api.example.com:99999": "from 1 to 65535", "https://api.example.com:*": "127.0.0.1", "https://*.example.com:*": "127.0.0.1", "http://127.0.0.1:80:*": "127.0.0.1", "http://*.example.com": `"https://*.example.com"`,
		"https://*.com": "one owner", "https://*.com.": "one owner", "https://*.0.0.1": "one owner", "https://*.[::1]": "a host", "https://a b.example.com": "a host", "https://api.example.com\n": "a host", "https://.example.com": "a host",
	} {
		_, err := ParseOrigins([]string{"https://first.example.com", entry})
		if err == nil || !strings.Contains(err.Error(), "Origins[1]: ") || !strings.Contains(err.Error(), fix) || strings.Contains(err.Error(), "secret") || strings.Contains(fmt.Sprint(err), "\n") {
			t.Errorf("%q: %v; want Origins[1] and %q", entry, err, fix)
		}
	}
}
