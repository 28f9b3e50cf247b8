package session

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
)

// ParseHeaders reads the values of --header: "Name: value", or "@FILE" with one such header a line. Blank lines and lines with a "#" at
// the start are skipped. With a file no secret has to stand in the process list. No error repeats a value.
func ParseHeaders(args []string) (http.Header, error) {
	h := make(http.Header)
	for i, arg := range args {
		where := fmt.Sprintf("--header number %d", i+1)
		name, isFile := strings.CutPrefix(arg, "@")
		if !isFile {
			if err := addHeader(h, arg); err != nil {
				return nil, fmt.Errorf("%s: %w", where, err)
			}
			continue
		}
		if err := AddHeaderFile(h, name); err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
	}
	return h, nil
}

// AddHeaderFile adds the headers in the file called name to h, one "Name: value" a line. It serves for secrets, which must not stand in the arguments of a process.
func AddHeaderFile(h http.Header, name string) error {
	text, err := terminal.ReadBounded(name, terminal.HeaderFileBytesMax)
	if err != nil {
		return err
	}
	if err := AddHeaders(h, string(text)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// AddHeaders adds the headers of a text, one a line. Empty lines and those that begin with # are skipped. An error names the line, and no value.
func AddHeaders(h http.Header, text string) error {
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		if strings.TrimSpace(line) == "" || line[0] == '#' {
			continue
		}
		if err := addHeader(h, line); err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return nil
}

// addHeader adds one line "Name: value" to h. An error does not repeat the value, which may be secret.
func addHeader(h http.Header, line string) error {
	name, value, found := strings.Cut(line, ":")
	name, value = http.CanonicalHeaderKey(name), strings.Trim(value, " \t")
	switch {
	case !found:
		return errors.New(`want "Name: value"`)
	case !words.IsToken(name):
		return errors.New("the name before the colon is not that of a header")
	case strings.ContainsFunc(value, func(r rune) bool { return (r < ' ' && r != '\t') || r == 0x7f }):
		return fmt.Errorf("the value of %s holds a control character", name)
	}
	if isOfConnection(name) {
		return fmt.Errorf("%s is of the connection and cannot be chosen", name)
	}
	h.Add(name, value)
	return nil
}

// isOfConnection reports whether a header, by its canonical name, belongs to the connection or to the framing. net/http writes both
// itself.
func isOfConnection(name string) bool {
	switch name {
	case "Content-Length", "Transfer-Encoding", "Connection", "Trailer", "Te", "Upgrade", "Keep-Alive", "Proxy-Connection":
		return true
	}
	return false
}
