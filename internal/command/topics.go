package command

import (
	"github.com/spf13/cobra"
)

// helpTopics returns the pages of oncehttp help about no single command.
func helpTopics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "results", Short: "What became of an operation, in one word", Long: resultsTopic},
		{Use: "exit-codes", Short: "The exit statuses", Long: exitCodesTopic},
		{Use: "keys", Short: "How to choose idempotency keys", Long: keysTopic},
		{Use: "signing", Short: "Sign each attempt: the file of --sign", Long: signingTopic},
		{Use: "configuration", Short: "The configuration file, and variables", Long: configurationTopic},
		{Use: "journals", Short: "What a journal is, and what may be done with it", Long: journalsTopic},
	}
}

const resultsTopic = `Each line that batch, send --json and journal resume print has a "result":

  done       a 2xx answer, and no decline was seen in it
  accepted   a 202: the server has taken it on, and it may still fail
  duplicate  done before: by another row ("of_row"), or so the server says; held,
             with exit status 3, where it does not say by whom (--already-done)
  declined   the business said no: a 402, or what --declined names in a 2xx or a final 4xx
  invalid    any other final 4xx
  rejected   nothing happened by this call, and it left nothing pending: the server
             refused to act (401, 403, 429 ...), or nothing was sent; another process
             may have sent the operation since; journal stuck --rejected
  mismatch   the key belongs to another request; this one took no effect
  held       in doubt, and nothing is sent until somebody settles it
  unknown    in doubt

Beside it stand "outcome" (what is known of the operation; "absent": a person
settled it so after it was sent), "status" (of the answer) and, where it is not
done, "error" with a code and a message. "doubt" beside done or accepted is what speaks
against that, such as /status=pending in the answer; the result stands. It is looked for in the
names and words that APIs use most: no doubt is no proof, and --done asks for one.

Some APIs have no idempotency key, and take a number of yours only once. Say
which answer says that it was used, where to look, and what must be equal:
--already-done 409:/error/code=duplicate_order --lookup '/orders?ref={order_id}'
--same amount,currency. After a lost answer the row is sent again, so that the API's
check of the number must hold, and is then done if exactly one order is found and it
is the same, else held as a mismatch. --done and --declined read that order, not the list
around it. A duplicate on the first send is held: somebody else may have used the number.

Some APIs decline inside a 200. Say how: --declined '/resultCode=Refused' is a
JSON pointer into the answer's body and the text that stands there; of the first of
a list of errors it is '/errors/0/message=no money' (a GraphQL answer with errors and no
data it judges beside --done alone). It names the result alone. Where a 2xx proves
nothing by itself, say what does: with --done '/status=succeeded' any other 2xx is held,
is refused by --declined, and is held by --unknown '/status=processing' whatever else it
says. Say the same of each run: they judge what is begun with them. The end of an earlier run stands, and batch says how
many rows were judged without; --declined names the results of these, too.`

const exitCodesTopic = `  0  all well
  1  the work was done, and some of it was refused: declined, invalid, mismatched,
     or rejected for its credentials (401, 403, 407) or for what it is (check:
     something failed)
  2  the call or its input is wrong, and nothing was sent
  3  something is unknown, held, or still to do, as what was not sent, or rejected
     by a 429, a page or an empty answer; or the journal's server does not answer
     now (check: the target cannot be reached, or the suite itself failed); 3
     outranks 1
  4  check only: nothing failed, but a safety case was not decided
  5  another process holds the journal, and nothing was done
  6  something was found: by audit, that the journal and the exports differ; by
     profile drift, that the journal and a profile differ; by journal stuck
     --fail-over and journal stats --fail-…, what they look for`

const keysTopic = `An idempotency key names one operation for ever. Build it from the business:

  order:{user}:{order_id}      one charge for one order
  task:{user}:{day}            one run a day, the day being the event's own
  msg:{topic}:{part}:{offset}  one message of a log
  order:{/order/id}            nested in an NDJSON line, by its JSON pointer

A part must be there and must not be empty. Do not use a time stamp of now, a
random number, or an id that is used again (user:update:{user} stops every
second update). A new try after a final refusal is spelled out: --generation 2.`

const signingTopic = `--sign FILE signs each attempt anew: timestamp, nonce and signature are fresh, key and
body stay as they are. FILE is JSON, and the key is in a file beside it:

  {
    "algorithm": "hmac-sha256",
    "key_file": "secret.txt",
    "layout": {
      "text": "{timestamp}\n{nonce}\n{method}\n{target}\n{key}\n{body}",
      "headers": {"X-Timestamp": "{timestamp}", "X-Nonce": "{nonce}", "X-Signature": "{signature}"},
      "encoding": "hex"
    }
  }

algorithm  hmac-sha256, ed25519, ecdsa-p256-sha256, rsa-pss-sha512 or rsa-v1_5-sha256
key_file   the secret (a line feed at its end does not count), or a private key as PEM
           in PKCS #8; relative to FILE's folder
layout     a text of the API's own: text has {method}, {authority}, {path}, {query},
           {target}, {timestamp}, {nonce}, {key}, {body} and {digest}; headers say where
           they go; encoding and digest are hex or base64, unit is s or ms;
           "key_elsewhere": true where the API's text does not cover the key
message    HTTP Message Signatures (RFC 9421): {"key_id": "shop-2026"}, and if wanted
           components, label, tag and lifetime ("60s")
wechat_pay WeChat Pay's API v3: {"merchant": "…", "serial": "…"}

oncehttp mock --sign FILE checks them: what is older than five minutes, or comes a
second time, is answered 401. docs/signing.md has more.`

const journalsTopic = `A journal keeps each operation's key, request and answer, without headers and
parameters that are called like credentials. Its
operations are

  pending     intended, maybe sent; the same key goes on
  held        as pending, but nothing is sent until somebody settles it
  confirmed   the server's answer is known
  mismatched  the server keeps another request under the key
  settled     somebody said what happened
  abandoned   sending was given up; this proves nothing

--journal takes

  payments.db                             a file, which one process holds at a time
  postgres://user@host:5432/database      tables that several machines share;
                                          ?schema=NAME for another schema than oncehttp
  mysql://user@host:3306/database         the same on MariaDB
  redis://host:6379/0?keep_key=8760h      Redis, where used keys are remembered so long,
                                          or forever; ?prefix=NAME for another journal
  @FILE                                   one of these URLs, in a file

Make the tables first, but for Redis: oncehttp journal migrate URL. A password in the arguments is
refused, since every user of the machine sees them: put the URL into @FILE or
ONCEHTTP_JOURNAL, or the password into PGPASSWORD, ~/.pgpass, MYSQL_PWD or
REDISCLI_AUTH. Where a database does not answer, a command ends with status 3, and
does nothing.

--seal-key @FILE encrypts what the journal keeps: one id:base64 a line, 32 random
bytes each, the current key first; only its owner may read FILE. Give it to every
command on that journal. A new key goes first, with the old ones behind it.
hash-keys:base64 on a line of its own hides the keys of the operations, too. A
journal in clear is sealed by journal compact --seal-key @FILE, which also brings
all of it under the current key. The output of commands, and FILE.csv, are in clear.

Never copy a journal's file while a process holds it, and never delete a journal to
"start again": what it remembers is what keeps a payment from being made twice.`

const configurationTopic = `The configuration file gives flags a value where the call does not: a line

  flag = value            for every command that has the flag
  batch.workers = 32      for one command

It is oncehttp/config in your configuration folder (XDG_CONFIG_HOME), or what
ONCEHTTP_CONFIG names. Blank lines and lines that begin with # are skipped. A name
that no command has is an error, and so is a second line for a flag; one that may be
repeated takes all of its lines.

  ONCEHTTP_JOURNAL  stands for --journal, a URL with its password as well, but
                    never for batch's, whose journal stands beside its input
  XDG_STATE_HOME    where the default journal of send lies
  NO_COLOR          no colours, also where TERM is dumb`
