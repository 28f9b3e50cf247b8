package send

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/internal/command/input"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/profile"
)

// setUser puts the credentials of --user into the headers. They come from a file
// only: the process list shows every argument.
func (f *sendFlags) setUser(header http.Header) error {
	if f.user == "" {
		return nil
	}
	name, isFile := strings.CutPrefix(f.user, "@")
	if !isFile {
		return errors.New("--user: a password there would stand in the process list; put user:password into a file, and say --user @FILE")
	}
	text, err := terminal.ReadBounded(name, terminal.HeaderFileBytesMax)
	if err != nil {
		return fmt.Errorf("--user: %w", err)
	}
	line := strings.TrimRight(string(text), "\r\n")
	if !strings.Contains(line, ":") || strings.ContainsAny(line, "\r\n") {
		return fmt.Errorf("--user: %s: want one line, user:password", name)
	}
	if header.Get("Authorization") != "" {
		return errors.New("--user: there is an Authorization header already")
	}
	header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(line)))
	return nil
}

// body returns the values of --data, joined by "&". A body of more than input.RowBytesMax bytes is an error. stdin is read for the value @-.
func (f *sendFlags) body(stdin io.Reader) ([]byte, error) {
	var body []byte
	for i, text := range f.data {
		piece, err := readData(text, stdin)
		if err != nil {
			return nil, fmt.Errorf("--data: %w", err)
		}
		if i > 0 {
			body = append(body, '&')
		}
		body = append(body, piece...)
	}
	if len(body) > input.RowBytesMax {
		return nil, fmt.Errorf("--data: %w: more than %d bytes", terminal.ErrTooLong, input.RowBytesMax)
	}
	return body, nil
}

// readData returns one value of --data: text, the bytes of @FILE, or of @- for stdin.
func readData(text string, stdin io.Reader) ([]byte, error) {
	name, isFile := strings.CutPrefix(text, "@")
	switch {
	case !isFile:
		return []byte(text), nil
	case name == "-":
		b, err := terminal.ReadAtMost(stdin, input.RowBytesMax)
		if err != nil {
			return nil, fmt.Errorf("stdin: %w", words.Pathless(err))
		}
		return b, nil
	}
	return terminal.ReadBounded(name, input.RowBytesMax)
}

// setType sets the Content-Type of the data if no header does. It refuses JSON if the profile's API is known to read only forms (Body.Formats; empty: not
// known).
func (f *sendFlags) setType(header http.Header, body []byte, p *profile.Profile) error {
	if len(f.data) == 0 || header.Get("Content-Type") != "" {
		return nil
	}
	kind := input.TypeForm
	if text := bytes.TrimSpace(body); len(text) > 0 && (text[0] == '{' || text[0] == '[') && json.Valid(text) {
		kind = "application/json"
		if len(p.Body.Formats) > 0 && !slices.Contains(p.Body.Formats, profile.JSONBody) {
			return fmt.Errorf("--data is JSON, and the API of --profile %s reads forms: write -d 'amount=100' -d 'metadata[order]=o1', or say -H 'Content-Type: application/json'", p.Name)
		}
	}
	header.Set("Content-Type", kind)
	return nil
}
