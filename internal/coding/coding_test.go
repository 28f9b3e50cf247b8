package coding_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/coding"
)

func zip(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.String()
}

func deflate(text string, wrapped bool) string {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.DefaultCompression) // the level is valid
	var to io.WriteCloser = w
	if wrapped {
		to = zlib.NewWriter(&b)
	}
	_, _ = io.WriteString(to, text)
	_ = to.Close()
	return b.String()
}

// TestEndsEarly: a coding that lacks its own end was cut off, wherever it ends. What is whole, unknown or damaged was not.
func TestEndsEarly(t *testing.T) {
	t.Parallel()
	whole := zip(strings.Repeat("ab", 20))
	for n := 1; n < len(whole); n++ {
		if !coding.EndsEarly(http.Header{"Content-Encoding": {"gzip"}}, []byte(whole[:n]), 1000) {
			t.Errorf("%d of %d bytes", n, len(whole))
		}
	}
	for name, r := range map[string]struct {
		codings, body string
		cut           bool
	}{
		"deflate": {"deflate", deflate(strings.Repeat("ab", 20), true)[:8], true}, "whole": {"gzip", whole, false}, "whole deflate": {"deflate", deflate("a", false), false},
		"none": {"", "a", false}, "empty": {"gzip", "", false}, "unknown": {"br", "a", false}, "not what it says": {"gzip", "plain", false}, "no deflate": {"deflate", "{}", false},
		"over the limit": {"gzip", zip(strings.Repeat("a", 2000)), false},
	} {
		if got := coding.EndsEarly(http.Header{"Content-Encoding": {r.codings}}, []byte(r.body), 1000); got != r.cut {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestDecode: the codings that are known are taken off, and all of the text is had only if there is no more of it.
func TestDecode(t *testing.T) {
	t.Parallel()
	const limit = 1000
	for name, r := range map[string]struct {
		codings, body, text string
		part, all           bool // part: the body is not whole
	}{
		"none":                 {"", "a", "a", false, true},
		"none, part":           {"", "a", "a", true, false},
		"identity":             {"identity, ", "a", "a", false, true},
		"gzip":                 {"gzip", zip("a"), "a", false, true},
		"gzip, part":           {"gzip", zip("a"), "a", true, false},
		"GZip":                 {" GZip ", zip("a"), "a", false, true},
		"x-gzip":               {"x-gzip", zip("a"), "a", false, true},
		"deflate":              {"deflate", deflate("a", true), "a", false, true},
		"deflate, bare":        {"deflate", deflate("a", false), "a", false, true},
		"one in the other":     {"gzip, deflate", deflate(zip("a"), true), "a", false, true},
		"three":                {"gzip, gzip, gzip", zip(zip(zip("a"))), "", false, false},
		"unknown":              {"br", "a", "", false, false},
		"unknown around":       {"gzip, br", zip("a"), "", false, false},
		"not what it says":     {"gzip", "plain", "", false, false},
		"cut off":              {"gzip", zip(strings.Repeat("ab", 20))[:20], "", false, false},
		"empty":                {"gzip", "", "", false, true},
		"at the limit":         {"gzip", zip(strings.Repeat("a", limit)), strings.Repeat("a", limit), false, true},
		"one over the limit":   {"gzip", zip(strings.Repeat("a", limit+1)), strings.Repeat("a", limit+1), false, false},
		"a thousand times it":  {"gzip", zip(strings.Repeat("a", 1000*limit)), strings.Repeat("a", limit+1), false, false},
		"a bomb in another":    {"gzip, gzip", zip(zip(strings.Repeat("a", 1000*limit))), "", false, false},
		"two headers' codings": {"gzip\ndeflate", deflate(zip("a"), true), "a", false, true},
	} {
		text, all := coding.Decode(http.Header{"Content-Encoding": strings.Split(r.codings, "\n")}, []byte(r.body), !r.part, limit)
		if all != r.all || (r.all || r.text != "") && string(text) != r.text || len(text) > limit+1 {
			t.Errorf("%s: %d bytes %.20q, all %t; want %d and %t", name, len(text), text, all, len(r.text), r.all)
		}
	}
}
