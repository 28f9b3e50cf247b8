package session

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// WebhookSecretVariable is the variable that stands for --webhook-secret.
const WebhookSecretVariable = "ONCEHTTP_WEBHOOK_SECRET"

// WebhookSecrets returns the secrets by which events of an API are verified: those in the file of --webhook-secret @FILE, one a line, or else those of the environment
// variable. It is an error if there is none. flag is the value of --webhook-secret.
func WebhookSecrets(flag string) (all [][]byte, err error) {
	text := []byte(os.Getenv(WebhookSecretVariable))
	if flag != "" {
		name, isFile := strings.CutPrefix(flag, "@")
		if !isFile {
			return nil, errors.New("--webhook-secret: want @FILE; a secret in the arguments would stand in the process list")
		}
		if text, err = terminal.ReadBounded(name, terminal.HeaderFileBytesMax); err != nil {
			return nil, fmt.Errorf("--webhook-secret: %w", err)
		}
	}
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			all = append(all, line)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("--webhooks: give the secret of the API's events, with --webhook-secret @FILE or " + WebhookSecretVariable)
	}
	return all, nil
}
