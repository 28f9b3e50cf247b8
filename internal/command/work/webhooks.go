package work

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
)

// webhookFlags are the flags for the events of an API, as given.
type webhookFlags struct {
	address    string
	secret     string
	url        string
	tolerance  time.Duration
	test       bool
	account    string
	references []string
}

// bind adds the flags of work about webhooks to fs.
func (f *webhookFlags) bind(fs *pflag.FlagSet) {
	fs.StringVar(&f.address, "webhooks", "", "take the API's signed events at this address, such as :8443, by --profile (default: nowhere)")
	fs.StringVar(&f.secret, "webhook-secret", "", "@FILE with the secrets of the events, one a line, the current one first (or "+session.WebhookSecretVariable+")")
	fs.StringVar(&f.url, "webhook-url", "", "the address of --webhooks as the API knows it, where it signs that (square)")
	fs.DurationVar(&f.tolerance, "webhook-tolerance", 0, "how far the signed time of an event may be from this clock (default 5m; at most 1h)")
	fs.BoolVar(&f.test, "webhook-test", false, "the operations are of the API's test environment, and events of the live one prove nothing")
	fs.StringVar(&f.account, "webhook-account", "", "the merchant whose events count, where one secret is for all merchants of an application (square: merchant_id; gocardless: organisation)")
	fs.StringArrayVar(&f.references, "webhook-reference", nil, "EVENT=REQUEST: the JSON pointers to a business reference, in an event and in a request that keeps it (--keep); may be repeated")
}

// config returns the settings for events of the API (webhooks) by the flags. Without --webhooks they are of no use, and any other flag of events is an error.
func (f *webhookFlags) config() (oncehttp.WebhookConfig, error) {
	c := oncehttp.WebhookConfig{URL: f.url, Tolerance: f.tolerance, Test: f.test, Account: f.account}
	if f.address == "" {
		if f.secret != "" || f.url != "" || f.tolerance != 0 || f.test || f.account != "" || len(f.references) > 0 {
			return c, errors.New("--webhooks ADDRESS: the other flags of events go with it")
		}
		return c, nil
	}
	for _, text := range f.references {
		event, request, found := strings.Cut(text, "=")
		if !found {
			return c, fmt.Errorf("--webhook-reference %s: want EVENT=REQUEST, such as /resource_metadata/order=/payments/metadata/order", words.Clip(text))
		}
		c.References = append(c.References, oncehttp.WebhookReference{Event: event, Request: request})
	}
	var err error
	c.Secrets, err = session.WebhookSecrets(f.secret)
	return c, err
}

// serve takes signed events of the API at the address. where is a text with its URL, and end stops the server. Without an address nothing is served: where is ""
// then, and end does nothing.
func (f *webhookFlags) serve(c *oncehttp.Client, settings oncehttp.WebhookConfig) (where string, end func(), err error) {
	if f.address == "" {
		return "", func() {}, nil
	}
	handler, err := oncehttp.Webhook(c, settings)
	if err != nil {
		return "", nil, fmt.Errorf("--webhooks: %w", terminal.Plain(err))
	}
	listener, err := net.Listen("tcp", f.address)
	if err != nil {
		return "", nil, fmt.Errorf("--webhooks %s: %w", words.Clip(f.address), err)
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: serverTimeout, ReadTimeout: serverTimeout, WriteTimeout: webhookTimeout, IdleTimeout: serverTimeout, MaxHeaderBytes: 1 << 16,
	}
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(listener) }) // until it is closed
	return fmt.Sprintf("; events at http://%s", listener.Addr()), func() {
		_ = server.Close()
		running.Wait()
	}, nil
}

// webhookTimeout bounds one event: its body, and the journal.
const webhookTimeout = time.Minute
