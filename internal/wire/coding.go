package wire

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"slices"
	"strings"
)

// codingsMax bounds how many codings, one inside the other, are decoded. Nobody uses more than one.
const codingsMax = 2

// decode sets Text and TextWhole. At most limit bytes are decoded, and one more.
func (a *Answer) decode(limit int64) {
	a.Text, a.TextWhole = a.Body, a.Whole
	codings := contentCodings(a.Head.Header)
	if len(codings) == 0 || len(a.Body) == 0 {
		return
	}
	var r io.Reader = bytes.NewReader(a.Body)
	for i, coding := range slices.Backward(codings) { // the last one was applied last
		plain := decoder(coding, r)
		if plain == nil || i >= codingsMax {
			a.Text, a.TextWhole = nil, false
			return
		}
		r = io.LimitReader(plain, limit+1)
	}
	text, err := io.ReadAll(r)
	a.Text, a.TextWhole = text, a.Whole && err == nil && int64(len(text)) <= limit
}

// contentCodings lists the codings of a body in the order in which they were applied (RFC 9110 section 8.4).
func contentCodings(h http.Header) (codings []string) {
	for _, line := range h["Content-Encoding"] {
		for coding := range strings.SplitSeq(line, ",") {
			if coding = strings.ToLower(strings.TrimSpace(coding)); coding != "" && coding != "identity" {
				codings = append(codings, coding)
			}
		}
	}
	return codings
}

// decoder returns a reader that takes the coding off; nil if it is not known, or r does not begin so.
func decoder(coding string, r io.Reader) io.Reader {
	switch coding {
	case "gzip", "x-gzip":
		if zip, err := gzip.NewReader(r); err == nil {
			return zip
		}
	case "deflate":
		return inflater(bufio.NewReader(r))
	}
	return nil
}

// inflater reads deflate: in its zlib wrapper, as it should be, or bare, as some servers send it (RFC 9110 section 8.4.1.2).
func inflater(r *bufio.Reader) io.Reader {
	head, err := r.Peek(2)
	if err == nil && head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		if wrapped, err := zlib.NewReader(r); err == nil {
			return wrapped
		}
	}
	return flate.NewReader(r)
}
