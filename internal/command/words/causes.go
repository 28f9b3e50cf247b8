package words

import (
	"errors"
	"io/fs"
	"regexp"
)

// Pathless returns the cause of a file error without the operation and the path, for a message that names the file itself. Any other error is returned as it is.
func Pathless(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// causes are the errors of connections as Go spells them, and in words.
var causes = []struct {
	is   *regexp.Regexp
	text string
}{
	{regexp.MustCompile(`\bunexpected EOF\b`), "the connection ended in the middle"},
	{regexp.MustCompile(`(^|: )EOF\b`), "${1}the server closed the connection without an answer"},
	{regexp.MustCompile(`\b(?:read|write) tcp \S+: (?:read|write): connection reset by peer`), "the server reset the connection"},
	{regexp.MustCompile(`\bwrite tcp \S+: write: broken pipe`), "the server closed the connection while the request was sent"},
	{regexp.MustCompile(`\bdial tcp (\S+): connect: connection refused`), "nothing listens at $1 (connection refused)"},
	{regexp.MustCompile(`\bdial tcp: lookup (\S+?)(?: on \S+)?: no such host`), "there is no host $1"},
}

// CauseWords replaces the technical causes of failed connections in a text by words for the user.
func CauseWords(text string) string {
	for _, c := range causes {
		text = c.is.ReplaceAllString(text, c.text)
	}
	return text
}
