package input

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/oncehttp/oncehttp/internal/command/words"
)

// ParseDelimiter returns the character of --delimiter; 0 for an empty text, so that the file decides.
func ParseDelimiter(text string) (rune, error) {
	r, size := utf8.DecodeRuneInString(text)
	switch {
	case text == "":
		return 0, nil
	case text == "TAB" || text == `\t`:
		return '\t', nil
	case size != len(text) || r == '"' || r == '\r' || r == '\n' || r == utf8.RuneError:
		return 0, fmt.Errorf("--delimiter %q: want one character, or TAB", words.Clip(text))
	}
	return r, nil
}

// textForm is the form of an input's text. The zero value is UTF-8 with LF or CR LF at the ends of lines.
type textForm struct {
	order binary.ByteOrder // of UTF-16; nil: UTF-8
	cr    bool             // lines end in CR alone
	json  bool             // it is NDJSON
	comma rune             // between the columns of CSV
}

// headBytes is the size of the beginning looked at before an input is read. Its first textBytes have to be text.
const (
	headBytes = 32 << 10
	textBytes = 4 << 10
)

// isUTF32 reports whether a text begins with the byte order mark of UTF-32. That of one byte order begins like UTF-16's.
func isUTF32(head []byte) bool {
	return bytes.HasPrefix(head, []byte("\xff\xfe\x00\x00")) || bytes.HasPrefix(head, []byte("\x00\x00\xfe\xff"))
}

// byteOrderOf returns the byte order of a text in UTF-16, by the byte order mark at its beginning; nil if it has none, and is read as UTF-8.
func byteOrderOf(head []byte) binary.ByteOrder {
	switch {
	case isUTF32(head): // checkHead refuses it
		return nil
	case bytes.HasPrefix(head, []byte("\xff\xfe")):
		return binary.LittleEndian
	case bytes.HasPrefix(head, []byte("\xfe\xff")):
		return binary.BigEndian
	}
	return nil
}

// formOf guesses the form of an input from its first 32 KB: its byte order if it is UTF-16, whether it is NDJSON or CSV, whether lines end in CR
// alone, and CSV's delimiter.
func formOf(r io.Reader) textForm {
	in := bufio.NewReaderSize(r, headBytes)
	mark, _ := in.Peek(4)
	f := textForm{order: byteOrderOf(mark)}
	if f.order != nil {
		in = bufio.NewReaderSize(&utf16Reader{in: in, order: f.order}, headBytes)
	}
	head, _ := in.Peek(headBytes) // its errors are reported on reading
	first := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	f.json = len(first) > 0 && first[0] == '{'
	end := lineEnd(first, f.json)
	f.cr = end+1 < len(first) && first[end] == '\r' && first[end+1] != '\n' && first[end+1] != 0 // no NUL stands behind it, as in UTF-16 without a byte order mark
	f.comma = DelimiterOf(first[:end])
	return f
}

// lineEnd returns the index of the first CR or LF. In CSV it must be outside quotes. Without any, lineEnd returns the length.
func lineEnd(text []byte, json bool) int {
	quoted := false
	for i, c := range text {
		switch {
		case c == '"' && !json:
			quoted = !quoted
		case (c == '\n' || c == '\r') && !quoted:
			return i
		}
	}
	return len(text)
}

// DelimiterOf returns a tab or a semicolon if the header has one, and no comma, outside quotes; else a comma.
func DelimiterOf(text []byte) rune {
	header, quoted := text[:lineEnd(text, false)], false
	has := map[byte]bool{}
	for _, c := range header {
		if c == '"' {
			quoted = !quoted
		} else if !quoted {
			has[c] = true
		}
	}
	switch {
	case has[',']:
	case has['\t']:
		return '\t'
	case has[';']:
		return ';'
	}
	return ','
}

// reader returns a reader that turns r, the text as it was found, into UTF-8 with LF or CR LF at the ends of lines.
func (f *textForm) reader(r io.Reader) io.Reader {
	if f.order != nil {
		r = &utf16Reader{in: bufio.NewReaderSize(r, headBytes), order: f.order}
	}
	if f.cr {
		r = &crReader{in: bufio.NewReaderSize(r, headBytes), json: f.json}
	}
	return r
}

// notes returns lines for the user about unusual facts of the text called name: UTF-16, line ends, semicolons. given is the value of --delimiter; 0: none.
func (f *textForm) notes(name string, given rune) []string {
	var notes []string
	if f.order != nil {
		notes = append(notes, name+": is UTF-16, and read as that")
	}
	if f.cr {
		notes = append(notes, name+": its lines end in CR alone")
	}
	if !f.json && given == 0 && f.comma == ';' {
		notes = append(notes, name+": its columns are parted by semicolons, as the header shows (--delimiter says otherwise)")
	}
	return notes
}

// utf16Reader makes UTF-8 of UTF-16. The byte order mark is left out.
type utf16Reader struct {
	in    *bufio.Reader
	order binary.ByteOrder
	begun bool
	ready []byte
	rest  []byte // of ready: not read yet
}

// Read implements [io.Reader]. It returns the text of a UTF-16 file in UTF-8.
func (u *utf16Reader) Read(p []byte) (int, error) {
	for len(u.rest) == 0 {
		if err := u.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, u.rest)
	u.rest = u.rest[n:]
	return n, nil
}

// fill decodes the next characters into the buffer. A byte order mark at the beginning is dropped. An error after some characters comes again at the next call.
func (u *utf16Reader) fill() error {
	u.ready = u.ready[:0]
	for len(u.ready) < 4<<10 {
		r, err := u.character()
		if err != nil && len(u.ready) == 0 {
			return err
		}
		if err != nil {
			break // and comes again
		}
		if r == '\ufeff' && !u.begun {
			u.begun = true
			continue
		}
		u.begun = true
		u.ready = utf8.AppendRune(u.ready, r)
	}
	u.rest = u.ready
	return nil
}

// character reads one character, of two or four bytes. At an error it takes no byte, so that the next call returns the same error.
func (u *utf16Reader) character() (rune, error) {
	b, err := u.in.Peek(2)
	switch {
	case len(b) == 1 && errors.Is(err, io.EOF):
		return 0, errors.New("is UTF-16, and ends in the middle of a character")
	case err != nil:
		return 0, err
	}
	r, size := rune(u.order.Uint16(b)), 2
	if utf16.IsSurrogate(r) {
		b, _ = u.in.Peek(4)
		if len(b) < 4 {
			return 0, errors.New("is UTF-16, and ends in the middle of a character")
		}
		if r = utf16.DecodeRune(r, rune(u.order.Uint16(b[2:]))); r == utf8.RuneError {
			return 0, errors.New("is UTF-16, and holds half a character")
		}
		size = 4
	}
	_, _ = u.in.Discard(size)
	return r, nil
}

// crReader replaces by LF each CR without a LF behind it: outside the quotes of CSV, everywhere in NDJSON.
type crReader struct {
	in     *bufio.Reader
	json   bool
	quoted bool
}

// Read implements io.Reader. It turns each CR that ends a line alone into LF, which CSV readers need. In CSV, a CR within quotes stays.
func (c *crReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := c.in.Read(p[:1]) // waits; the rest is what is buffered then
	if n == 0 {
		return 0, err
	}
	more, _ := c.in.Peek(min(c.in.Buffered(), len(p)-1))
	n += copy(p[1:], more)
	_, _ = c.in.Discard(len(more))
	for i := range n {
		switch {
		case p[i] == '"' && !c.json:
			c.quoted = !c.quoted
		case p[i] == '\r' && !c.quoted && !c.beforeLF(p[i+1:n]):
			p[i] = '\n'
		}
	}
	return n, nil
}

// beforeLF reports whether a LF comes next: then the CR before it is half of a CR LF, and stays. rest is the rest of the bytes of this read.
func (c *crReader) beforeLF(rest []byte) bool {
	if len(rest) == 0 {
		rest, _ = c.in.Peek(1)
	}
	return len(rest) > 0 && rest[0] == '\n'
}

// checkHead refuses an input that is no text, with the reason. head is its beginning.
func checkHead(head []byte) error {
	line := func(at int) int { return 1 + bytes.Count(head[:at], []byte("\n")) }
	nul := bytes.IndexByte(head, 0)
	whole := trimCutRune(head)
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")): // no text has these
		return errors.New("is a spreadsheet or zip file: save it as CSV")
	case isUTF32(head):
		return errors.New("is UTF-32; save it as UTF-8")
	case nul >= 0 && looksUTF16(head):
		return errors.New("looks like UTF-16 without a byte order mark; save it as UTF-8")
	case nul >= 0:
		return fmt.Errorf("holds a NUL byte in line %d, as no text does", line(nul))
	case !utf8.Valid(whole):
		at := 0
		for r, size := utf8.DecodeRune(whole); r != utf8.RuneError || size > 1; r, size = utf8.DecodeRune(whole[at:]) {
			at += size
		}
		return fmt.Errorf("is not UTF-8 text: byte 0x%02X in line %d; save it as UTF-8", whole[at], line(at))
	}
	return nil
}

// looksUTF16 reports whether every second byte of the beginning is NUL, and no other, as in UTF-16 of Latin letters. It looks at 8 pairs of bytes; with fewer than
// 4 it returns false.
func looksUTF16(head []byte) bool {
	const few, enough = 4, 8
	pairs := min(len(head)/2, enough)
	if pairs < few {
		return false
	}
	for first := range 2 {
		n := 0
		for i := first; i < 2*pairs; i += 2 {
			if head[i] == 0 && head[i^1] != 0 {
				n++
			}
		}
		if n == pairs {
			return true
		}
	}
	return false
}
