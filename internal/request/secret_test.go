package request

import (
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// FuzzSplitTarget: what is left of a target holds no parameter that counts as a credential, every other one stands as
// it was and in its order, and leaving out again changes nothing.
func FuzzSplitTarget(f *testing.F) {
	for _, query := range []string{"a=1&sig=x&b=2", "sig=x", "&&sig=&", "a;sig=x;b", "%73ig=x&a", "a=1&SIG", "sig=x&sig=y", "a=b?c&sig", "=&;=", "x=%zz&%zz=1", "a+b=1"} {
		f.Add(query)
	}
	s := &Secrets{Parameters: []string{"pin"}}
	f.Fuzz(func(t *testing.T, query string) {
		if strings.ContainsAny(query, "#") {
			return
		}
		target := "/p?" + query
		kept, omitted := s.splitTarget(target, "")
		if len(omitted) == 0 && kept != target {
			t.Errorf("%q became %q though nothing was left out", target, kept)
		}
		for _, name := range omitted {
			if !s.parameter(strings.TrimPrefix(name, "?")) {
				t.Errorf("%q was left out of %q", name, target)
			}
		}
		if again, more := s.splitTarget(kept, ""); again != kept || len(more) > 0 {
			t.Errorf("%q became %q, then %q without %q", target, kept, again, more)
		}
		plain := func(query string) (names []string) {
			for _, part := range strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' }) {
				name, _, _ := strings.Cut(part, "=")
				if unescaped, err := url.QueryUnescape(name); err == nil {
					name = unescaped
				}
				if !s.parameter(name) {
					names = append(names, part)
				}
			}
			return names
		}
		_, rest, _ := strings.Cut(kept, "?")
		if got, want := plain(rest), plain(query); !slices.Equal(got, want) {
			t.Errorf("%q kept %q, want %q", query, got, want)
		}
	})
}

// TestSecretParameters: an exact list, case and escapes aside; what the caller names; and never the key's carrier.
func TestSecretParameters(t *testing.T) {
	t.Parallel()
	s := &Secrets{Parameters: []string{"Pin"}}
	for query, want := range map[string]string{
		"access_token=x": "", "a=1&access_token=x&b=2": "?a=1&b=2", "ACCESS_TOKEN=x&a": "?a", "access%5Ftoken=x": "", "a;sig=x;b": "?a;b",
		"signature": "", "X-Amz-Signature=x&X-Amz-Date=y": "?X-Amz-Date=y", "api_key=1&apikey=2&api-key=3": "", "pin=1&PIN=2": "",
		"token=x&session=y&key=z&code=1": "?token=x&session=y&key=z&code=1", "x=sig&sign=1&sigma=2": "?x=sig&sign=1&sigma=2", "nonce=k&sig=x": "?nonce=k", "": "?",
	} {
		if got, _ := s.splitTarget("/p?"+query, "nonce"); got != "/p"+want {
			t.Errorf("%q became %q, want %q", query, got, "/p"+want)
		}
	}
	if got, omitted := s.splitTarget("/p?sig=k&pin=1", "sig"); got != "/p?sig=k" || !slices.Equal(omitted, []string{"?pin"}) {
		t.Errorf("the key's carrier: %q without %q", got, omitted)
	}
}

// TestHeaderWordsProperty: a header is a credential as soon as one whole word of it is, whatever stands around it and
// however it is spelled; a word that only holds one by chance is not.
func TestHeaderWordsProperty(t *testing.T) {
	t.Parallel()
	secret := []string{"auth", "authorization", "cookie", "bearer", "jwt", "dpop", "session", "passwd", "passphrase", "pin", "hmac", "token", "secret", "signature", "password", "api-key", "access-key", "subscription-key"}
	plain := []string{"x", "author", "request", "id", "account", "sort-by", "pinned", "assigned", "monkey", "keyboard", "obsession", "hmacs", "version"}
	random := rand.New(rand.NewPCG(1, 2))
	spell := func(words []string) string {
		var b strings.Builder
		for i, word := range words {
			if i > 0 {
				b.WriteString([]string{"-", "_", "-"}[random.IntN(3)])
			}
			for _, ch := range word {
				if random.IntN(2) == 0 {
					ch = []rune(strings.ToUpper(string(ch)))[0]
				}
				b.WriteRune(ch)
			}
		}
		return b.String()
	}
	pick := func(from []string) (words []string) {
		for range random.IntN(4) {
			words = append(words, from[random.IntN(len(from))])
		}
		return words
	}
	for range 5000 {
		around := append(pick(plain), "x")
		if name := spell(around); hasSecretWord(name) {
			t.Fatalf("%s is taken for a credential", name)
		}
		with := slices.Insert(around, random.IntN(len(around)+1), secret[random.IntN(len(secret))])
		if name := spell(with); !hasSecretWord(name) {
			t.Fatalf("%s is not taken for a credential", name)
		}
	}
}

// FuzzHeaderWords: case, and hyphen or underscore, make no difference, and KeepHeader keeps what the caller did not
// name itself.
func FuzzHeaderWords(f *testing.F) {
	f.Add("X-Auth-Key")
	f.Add("a__b--")
	f.Fuzz(func(t *testing.T, name string) {
		if !isToken(name) {
			return
		}
		is := hasSecretWord(name)
		for _, other := range []string{strings.ToUpper(name), http.CanonicalHeaderKey(name), strings.ReplaceAll(name, "-", "_")} {
			if hasSecretWord(other) != is {
				t.Errorf("%q is a credential: %v; %q is not the same", name, is, other)
			}
		}
		keep := Secrets{KeepHeader: func(string) bool { return true }}
		if keep.header(name) {
			t.Errorf("%q is not kept", name)
		}
		if keep.Headers = []string{strings.ToLower(name)}; !keep.header(name) {
			t.Errorf("%q is kept though the caller named it", name)
		}
	})
}

// TestKeptHeader: credentials of an answer are left out, also those of the URLs that it names, and nothing that the
// caller holds is changed.
func TestKeptHeader(t *testing.T) {
	t.Parallel()
	s := &Secrets{}
	for ref, want := range map[string]string{
		"https://u:p@h/x?a=1&sig=s#f": "https://h/x?a=1#f", "//u@h/x": "//h/x", "/x?sig=s": "/x", "x?a": "x?a", "": "", "https://h": "https://h",
		"https://h/cb#access_token=s&state=1": "https://h/cb#state=1", "https://h/cb#id_token=s": "https://h/cb", "https://h/a@b?c=d@e": "https://h/a@b?c=d@e",
		"https://u:p@h?sig=s": "https://h", "/a//u@b": "/a//u@b", "mailto:a@b": "mailto:a@b", "https://a@b@h/": "https://h/", "?sig=s&x": "?x", "x?": "x?",
	} {
		h := http.Header{"Location": {ref}, "Set-Cookie": {"c"}, "X-Id": {"7"}}
		kept := s.KeptHeader(h)
		if kept.Get("Location") != want || kept["Set-Cookie"] != nil || kept.Get("X-Id") != "7" {
			t.Errorf("%q is kept as %v, want %q", ref, kept, want)
		}
		if h.Get("Location") != ref || h.Get("Set-Cookie") != "c" {
			t.Errorf("the caller's headers became %v", h)
		}
	}
	if s.KeptHeader(nil) != nil {
		t.Error("no headers became some")
	}
}

// FuzzCleanURL: whatever stands as userinfo or as a credential in query or fragment is gone, and what has none stays.
func FuzzCleanURL(f *testing.F) {
	f.Add("h.example", "/p", "a=1", "s3cr3t")
	f.Fuzz(func(t *testing.T, host, path, query, secret string) {
		base, err := url.Parse("https://" + host + path)
		if err != nil || base.Host != host || base.User != nil || len(secret) < 4 || strings.ContainsAny(secret+path+query, `#?&;@/\`) || strings.ContainsAny(host, `\`) {
			return
		}
		s := &Secrets{}
		plain := "https://" + host + path + "?x" + query
		if strings.Contains(plain, secret) {
			return
		}
		if got := cleanURL(plain, s.parameter); got != plain {
			t.Errorf("%q became %q", plain, got)
		}
		for _, leaky := range []string{"https://u:" + secret + "@" + host + path, plain + "&sig=" + secret, plain + "#access_token=" + secret, "//" + secret + "@" + host} {
			if got := cleanURL(leaky, s.parameter); strings.Contains(got, secret) {
				t.Errorf("%q became %q", leaky, got)
			}
		}
	})
}
