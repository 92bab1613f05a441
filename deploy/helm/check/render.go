// Renders the chart without Helm: in Helm's template language, with the functions that the chart uses. Any other function is an
// error. Standard input is a JSON object with the templates' context; the arguments are the chart's template files.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"
)

func main() {
	if err := render(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type files map[string]string

func (f files) Get(name string) string { return f[name] }

func render(paths []string) error {
	var context map[string]any
	if err := json.NewDecoder(os.Stdin).Decode(&context); err != nil {
		return err
	}
	texts := files{}
	for name, text := range context["Files"].(map[string]any) {
		texts[name] = text.(string)
	}
	context["Files"] = texts
	all := template.New("chart")
	all.Funcs(functions(all))
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if _, err := all.New(filepath.Base(path)).Parse(string(text)); err != nil {
			return err
		}
	}
	for _, path := range paths {
		if strings.HasPrefix(filepath.Base(path), "_") {
			continue
		}
		fmt.Printf("---\n# %s\n", filepath.Base(path))
		var out strings.Builder
		if err := all.ExecuteTemplate(&out, filepath.Base(path), context); err != nil {
			return err
		}
		if strings.Contains(out.String(), "<no value>") {
			return fmt.Errorf("%s: a value is missing: %s", path, out.String())
		}
		fmt.Println(out.String())
	}
	return nil
}

// Writes the outermost level as lines, so that it can be embedded in other lines, and the values as JSON, which is YAML too.
func toYaml(value any) (string, error) {
	lines := []string{}
	line := func(before string, value any) error {
		text, err := json.Marshal(value)
		lines = append(lines, before+string(text))
		return err
	}
	var err error
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			err = errors.Join(err, line(fmt.Sprintf("%q: ", key), value[key]))
		}
	case []any:
		for _, item := range value {
			err = errors.Join(err, line("- ", item))
		}
	default:
		err = line("", value)
	}
	return strings.Join(lines, "\n"), err
}

// A certificate and its key, in PEM.
type pair struct{ Cert, Key string }

// Issues a certificate, or an authority if no other one signs it.
func issue(name string, names []any, days int, by *pair) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	made := x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now(),
		NotAfter:     time.Now().AddDate(0, 0, days),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
	for _, other := range names {
		made.DNSNames = append(made.DNSNames, other.(string))
	}
	parent, signer := &made, key
	if by == nil {
		made.IsCA, made.BasicConstraintsValid, made.KeyUsage = true, true, x509.KeyUsageCertSign
	} else {
		certificate, _ := pem.Decode([]byte(by.Cert))
		secret, _ := pem.Decode([]byte(by.Key))
		parent, err = x509.ParseCertificate(certificate.Bytes)
		if err != nil {
			return pair{}, err
		}
		parsed, err := x509.ParsePKCS8PrivateKey(secret.Bytes)
		if err != nil {
			return pair{}, err
		}
		signer = parsed.(*ecdsa.PrivateKey)
	}
	signed, err := x509.CreateCertificate(rand.Reader, &made, parent, &key.PublicKey, signer)
	if err != nil {
		return pair{}, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return pair{}, err
	}
	inPem := func(kind string, bytes []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}))
	}
	return pair{inPem("CERTIFICATE", signed), inPem("PRIVATE KEY", secret)}, nil
}

func functions(all *template.Template) template.FuncMap {
	indent := func(width int, text string) string {
		pad := strings.Repeat(" ", width)
		return pad + strings.ReplaceAll(text, "\n", "\n"+pad)
	}
	return template.FuncMap{
		"include": func(name string, data any) (string, error) {
			var out strings.Builder
			err := all.ExecuteTemplate(&out, name, data)
			return out.String(), err
		},
		"toYaml": toYaml,
		"nindent":    func(width int, text string) string { return "\n" + indent(width, text) },
		"quote":      func(value any) string { return fmt.Sprintf("%q", fmt.Sprint(value)) },
		"replace":    func(old, by, text string) string { return strings.ReplaceAll(text, old, by) },
		"trimSuffix": func(suffix, text string) string { return strings.TrimSuffix(text, suffix) },
		"sha256sum":  func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) },
		"b64enc":     func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) },
		"splitList":  func(by, text string) []string { return strings.Split(text, by) },
		"first":      func(of []string) string { return of[0] },
		"rest":       func(of []string) []string { return of[1:] },
		"get":        func(of map[string]any, key string) any { return of[key] },
		// No cluster is asked, as with `helm template`.
		"lookup":        func(_, _, _, _ string) map[string]any { return map[string]any{} },
		"genCA":         func(name string, days int) (pair, error) { return issue(name, nil, days, nil) },
		"genSignedCert": func(name string, _ any, names []any, days int, by pair) (pair, error) { return issue(name, names, days, &by) },
		"hasPrefix":  func(prefix, text string) bool { return strings.HasPrefix(text, prefix) },
		"list":       func(values ...any) []any { return values },
		"append":     func(values []any, value any) []any { return append(append([]any{}, values...), value) },
		"hasKey":     func(of map[string]any, key string) bool { _, is := of[key]; return is },
		"trunc": func(length int, text string) string {
			if len(text) > length {
				return text[:length]
			}
			return text
		},
		"ternary": func(yes, no any, which bool) any {
			if which {
				return yes
			}
			return no
		},
		"default": func(otherwise, value any) any {
			if is, _ := template.IsTrue(value); is {
				return value
			}
			return otherwise
		},
		"dict": func(pairs ...any) (map[string]any, error) {
			made := map[string]any{}
			for at := 0; at+1 < len(pairs); at += 2 {
				made[pairs[at].(string)] = pairs[at+1]
			}
			if len(pairs)%2 != 0 {
				return nil, fmt.Errorf("dict: a key without a value")
			}
			return made, nil
		},
	}
}
