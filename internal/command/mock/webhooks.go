package mock

import (
	"errors"
	"strings"

	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/mockserver"
)

// webhookFlags are the flags for events, as given.
type webhookFlags struct {
	url    string
	secret string
	faults string
	test   bool
}

// bind adds the flags of mock about webhooks to fs.
func (f *webhookFlags) bind(fs *pflag.FlagSet) {
	fs.StringVar(&f.url, "webhooks", "", "send a signed event of each effect to this URL at this machine, where the profile has events (oncehttp work --webhooks)")
	fs.StringVar(&f.secret, "webhook-secret", "", "@FILE with the secret of the events (or "+session.WebhookSecretVariable+")")
	fs.StringVar(&f.faults, "webhook-faults", "", "the faults of the first events, with commas between: ok, late, twice, after (the next one), forged, false, other (environment), dropped")
	fs.BoolVar(&f.test, "webhook-test", false, "the events are of the test environment")
}

// set adds the webhooks of the flags to the mock's configuration: their URL, secret and faults. Without --webhooks it changes nothing, and any other flag of webhooks
// is an error.
func (f *webhookFlags) set(cfg *mockserver.Config) error {
	if f.url == "" {
		if f.secret != "" || f.faults != "" || f.test {
			return errors.New("--webhooks URL: the other flags of events go with it")
		}
		return nil
	}
	secrets, err := session.WebhookSecrets(f.secret)
	if err != nil {
		return err
	}
	cfg.Webhooks = &mockserver.Webhooks{URL: f.url, Secret: string(secrets[0]) /* the first signs */, Test: f.test}
	if f.faults == "" {
		return nil
	}
	for name := range strings.SplitSeq(f.faults, ",") {
		if name == "ok" {
			name = "" // no fault
		}
		cfg.Webhooks.Script = append(cfg.Webhooks.Script, mockserver.EventFault(name))
	}
	return nil
}
