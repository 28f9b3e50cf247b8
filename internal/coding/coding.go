// Package coding takes the content codings off a body.
package coding

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
)

// codingsMax is the greatest number of nested codings to decode. Nobody uses more than one.
const codingsMax = 2

// Decode returns the text of a body with these headers. It returns body itself if body has no coding, and nil if a coding is unknown, or there are more than
// codingsMax. whole is true if nothing is missing at the end of body. all reports whether text is complete, too: body is whole, could be decoded, and is at
// most limit bytes when decoded. At most limit bytes are decoded, and one more.
func Decode(h http.Header, body []byte, whole bool, limit int64) (text []byte, all bool) {
	codings := contentCodings(h)
	if len(codings) == 0 || len(body) == 0 {
		return body, whole
	}
	var r io.Reader = bytes.NewReader(body)
	for i, coding := range slices.Backward(codings) { // the last one was applied last
		plain, _ := decoder(coding, r)
		if plain == nil || i >= codingsMax {
			return nil, false
		}
		r = io.LimitReader(plain, limit+1)
	}
	text, err := io.ReadAll(r)
	return text, whole && err == nil && int64(len(text)) <= limit
}

// EndsEarly reports whether the content coding of a body ends before its own end mark: the body was cut off, also if its length says that it is whole. At
// most limit bytes are decoded. It is false for an unknown coding, for one in another, and for a body that does not begin as its coding does: it may have none.
func EndsEarly(h http.Header, body []byte, limit int64) bool {
	codings := contentCodings(h)
	if len(codings) != 1 || !begins(codings[0], body) {
		return false
	}
	plain, err := decoder(codings[0], bytes.NewReader(body))
	if plain != nil {
		_, err = io.Copy(io.Discard, io.LimitReader(plain, limit))
	}
	return errors.Is(err, io.ErrUnexpectedEOF)
}

// begins reports whether a body begins with the mark of its coding; a shorter body is compared as far as it goes. It is false for an empty body, and
// for deflate without a zlib header, which has no mark.
func begins(coding string, body []byte) bool {
	const gzipMark = "\x1f\x8b"
	switch coding {
	case "gzip", "x-gzip":
		n := min(len(body), len(gzipMark))
		return n > 0 && string(body[:n]) == gzipMark[:n]
	case "deflate":
		return len(body) > 1 && isWrapped(body)
	}
	return false
}

// isWrapped reports whether a deflate body begins with the two bytes of a zlib header. head must have at least two bytes.
func isWrapped(head []byte) bool { return head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 }

// contentCodings returns the codings of a body in the order of their application (RFC 9110 section 8.4).
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

// decoder returns a reader of the decoded bytes. It returns nil if the coding is unknown, and nil and an error if r does not begin with its header.
func decoder(coding string, r io.Reader) (io.Reader, error) {
	switch coding {
	case "gzip", "x-gzip":
		zip, err := gzip.NewReader(r)
		if err != nil {
			return nil, err
		}
		return zip, nil
	case "deflate":
		return inflater(bufio.NewReader(r)), nil
	}
	return nil, nil
}

// inflater reads deflate: in its zlib wrapper, as it should be, or bare, as some servers send it (RFC 9110 section 8.4.1.2).
func inflater(r *bufio.Reader) io.Reader {
	head, err := r.Peek(2)
	if err == nil && isWrapped(head) {
		if wrapped, err := zlib.NewReader(r); err == nil {
			return wrapped
		}
	}
	return flate.NewReader(r)
}
