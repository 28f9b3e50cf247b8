package input_test

import (
	"encoding/binary"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// asUTF16 is a text as spreadsheets save "Unicode text".
func asUTF16(order binary.AppendByteOrder, text string) string {
	var b []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		b = order.AppendUint16(b, unit)
	}
	return string(b)
}

// However a spreadsheet writes the same table, the same rows are sent; a line says so where it may be a mistake.
func TestBatchReadsWhatSpreadsheetsWrite(t *testing.T) {
	t.Parallel()
	const table = "order,name\n1,\"Łódź, \"\"x\"\"\"\n2,\"two\rlines\"\n3,\U0001F600\n"
	want := []string{`{"order":"1","name":"Łódź, \"x\""}`, `{"order":"2","name":"two\rlines"}`, `{"order":"3","name":"😀"}`}
	semicolons := strings.NewReplacer("order,", "order;", "1,", "1;", "2,", "2;", "3,", "3;").Replace(table)
	cr := strings.ReplaceAll(table, "\n", "\r")
	const utf16Note, crNote = "is UTF-16, and read as that", "its lines end in CR alone"
	const semicolonNote = "its columns are parted by semicolons, as the header shows (--delimiter says otherwise)"
	for name, c := range map[string]struct {
		text  string
		notes []string
	}{
		"UTF-8":                          {table, nil},
		"CR LF":                          {strings.ReplaceAll(table, "\n", "\r\n"), nil},
		"CR":                             {cr, []string{crNote}},
		"byte order mark, CR":            {"\ufeff" + cr, []string{crNote}},
		"semicolons":                     {semicolons, []string{semicolonNote}},
		"UTF-16, little endian":          {asUTF16(binary.LittleEndian, "\ufeff"+table), []string{utf16Note}},
		"UTF-16, big endian":             {asUTF16(binary.BigEndian, "\ufeff"+table), []string{utf16Note}},
		"UTF-16, CR, semicolons, header": {asUTF16(binary.LittleEndian, "\ufeff"+strings.ReplaceAll(semicolons, "\n", "\r")), []string{utf16Note, crNote, semicolonNote}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var got []string
			s := commandtest.Serve(t, func(_ http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				mu.Lock()
				defer mu.Unlock()
				got = append(got, string(b))
			})
			file := commandtest.WriteFile(t, "in.csv", c.text)
			ran := commandtest.Run(t, "batch", file, "--url", s.URL, "--key", "o:{order}", "--workers", "1").Want(t, terminal.ExitOK)
			if !slices.Equal(got, want) {
				t.Errorf("sent %q, want %q", got, want)
			}
			for _, note := range []string{utf16Note, crNote, semicolonNote} {
				if has := strings.Contains(ran.Err, file+": "+note+"\n"); has != slices.Contains(c.notes, note) {
					t.Errorf("stderr %q: %q is %t", ran.Err, note, has)
				}
			}
		})
	}
}

// A lone CR is no end of a line where others are.
func TestCRStaysInsideACell(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if b, _ := io.ReadAll(r.Body); string(b) != `{"order":"1","note":"a\rb"}` {
			http.Error(w, string(b), http.StatusTeapot)
		}
	})
	commandtest.Run(t, "batch", commandtest.WriteFile(t, "in.csv", "order,note\n1,a\rb\n"), "--url", s.URL, "--key", "o:{order}").Want(t, terminal.ExitOK)
}

// NDJSON in UTF-16 is sent as UTF-8; with CR at the ends of lines it is as many rows as lines.
func TestNDJSONOfOtherEditors(t *testing.T) {
	t.Parallel()
	for _, text := range []string{asUTF16(binary.LittleEndian, "\ufeff{\"id\":\"é\"}\n{\"id\":\"b\"}\n"), "{\"id\":\"\\\"é\"}\r{\"id\":\"b\"}\r"} {
		s := commandtest.Serve(t, func(http.ResponseWriter, *http.Request) {})
		got := commandtest.Run(t, "batch", commandtest.WriteFile(t, "in.ndjson", text), "--url", s.URL, "--key", "o:{id}").Want(t, terminal.ExitOK)
		if n := len(got.Lines(t)); n != 2 {
			t.Errorf("%q: %d rows, want 2", text, n)
		}
	}
}

// UTF-16 without a byte order mark is not called a text with CR at the ends of lines, nor is one with it.
func TestUTF16HasNoLoneCR(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(http.ResponseWriter, *http.Request) {})
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		for _, text := range []string{"order,name\r\n1,two\r\n", "\ufefforder,name\r\n1,two\r\n"} {
			file := commandtest.WriteFile(t, "in.csv", asUTF16(order, text))
			if got := commandtest.Run(t, "batch", file, "--url", s.URL, "--key", "o:{order}"); strings.Contains(got.Err, "CR alone") || !strings.Contains(got.Err, "UTF-16") {
				t.Errorf("%v, %q: %q", order, text, got.Err)
			}
		}
	}
}

// What is no text says why: a NUL is not another encoding.
func TestNoText(t *testing.T) {
	t.Parallel()
	s := commandtest.Refusing(t)
	for text, want := range map[string]string{
		"order\n1\n\x00\n": "holds a NUL byte in line 3, as no text does",
		"order\n1\xe9\n":   "is not UTF-8 text: byte 0xE9 in line 2; save it as UTF-8",
		asUTF16(binary.LittleEndian, "order,name\n1,two\n"):              "looks like UTF-16 without a byte order mark; save it as UTF-8",
		asUTF16(binary.BigEndian, "order,name\n1,two\n"):                 "looks like UTF-16 without a byte order mark; save it as UTF-8",
		asUTF16(binary.LittleEndian, "\ufefforder,name\n1,two\n")[:9]:    "is UTF-16, and ends in the middle of a character",
		"\xff\xfe" + asUTF16(binary.LittleEndian, "a") + "\x00\xd8x\x00": "is UTF-16, and holds half a character",
	} {
		file := commandtest.WriteFile(t, "in.csv", text)
		commandtest.Run(t, "batch", file, "--url", s.URL, "--key", "o:{order}", "--quiet").Usage(t, "oncehttp: "+file+": "+want)
	}
}
