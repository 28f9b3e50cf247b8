package place

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/oncehttp/oncehttp/internal/command/words"
)

// SendJournal returns the path of the default journal of send. It makes the folder.
func SendJournal() (string, error) {
	path, err := sendPath()
	if err != nil {
		return "", fmt.Errorf("no place for a default journal, use --journal: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("journal folder %s, use --journal: %w", filepath.Dir(path), words.Pathless(err))
	}
	return path, nil
}

// MadeBySend returns the path of the default journal of send if the file exists, else "".
func MadeBySend() string {
	path, err := sendPath()
	if err != nil {
		return ""
	}
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// sendPath returns the path of the journal of send without --journal.
func sendPath() (string, error) { return StatePath("send.db") }

// StatePath returns the path of a file of the user's own: below XDG_STATE_HOME, or in the system's folder for data of a user: os.UserConfigDir on Windows and
// macOS, ~/.local/state elsewhere.
func StatePath(name string) (string, error) {
	dir := os.Getenv("XDG_STATE_HOME")
	if home, err := os.UserHomeDir(); dir == "" && err == nil && runtime.GOOS != "windows" && runtime.GOOS != "darwin" {
		dir = filepath.Join(home, ".local", "state")
	}
	if dir == "" {
		var err error
		if dir, err = os.UserConfigDir(); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, "oncehttp", name), nil
}
