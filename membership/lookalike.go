package membership

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// lookalikes are letters and digits that look the same in many typefaces: those of a
// line look like its first. They are those of Unicode Technical Standard 39, Unicode
// Security Mechanisms (confusables.txt), among Latin, Greek, Cyrillic, Armenian,
// Coptic, Cherokee and Lisu, as far as one letter stands for one.
const lookalikes = `
AΑАᎪꓮ BΒВᏴꓐ CⲤСᏟꓚ DᎠꓓ EΕЕᎬꓰ FϜꓝ GԌᏀᏻꓖ HΗⲎНᎻꓧ JͿЈᎫꓙ KΚⲔКᏦꓗ LⳐᏞꓡ MΜϺⲘМᎷꓟ NΝⲚꓠ
O0ΟⲞОՕꓳ PΡⲢРᏢꓑ RᎡᏒꓣ SЅՏᏕᏚꓢ TΤⲦТᎢꓔ UՍꓴ VѴᏙꓦ WԜᏔꓪ XΧⲬХꓫ YΥⲨУҮᎩᎽꓬ ZΖᏃꓜ
aαа bЬᏏ cⲥсꮯ dԁꓒ eеҽ fք gց hһհᏂ iıιіӏᎥ jϳј l1IΙⲒІӀꓲ nոռ oοσⲟоօ pρⲣр qԛգզ rⲅгꮁ
sѕꮪ uυս vνѵꮩ wԝѡա xх yγуү zꮓ
ßβ þϸ ĸκⲕкꮶ ƅь əәǝ ƏӘ ȷյ ʀꮢ ʙвᏼ ʜнꮋ ʟⳑꮮ ʍмꮇ ᴛτтⲧ ɢԍꮐ ɔͻ ƆϽꓛ ƐԐ ɜз 3ЗƷӠ 4Ꮞ 6б 5Ƽ 2ƧϨ
ΓⲄГᎱ ΔⲆ ΠⲠП ΦⲪФՓ ΨⲮѰ ΛЛɅꓥ λⲗ πп φⲫфɸ ψѱ ωⲱ θӨΘѲѳөɵƟ
`

// prototype is, by a letter or digit, the one that it looks like.
var prototype = func() map[rune]rune {
	out := map[rune]rune{}
	for _, alike := range strings.Fields(lookalikes) {
		letters := []rune(alike)
		for _, r := range letters[1:] {
			out[r] = letters[0]
		}
	}
	return out
}()

// Looks is the same for names that look the same.
func Looks(name string) string {
	return strings.Map(func(r rune) rune {
		if r == plain.NonJoiner || r == plain.Joiner { // a small difference
			return -1
		}
		if like, ok := prototype[r]; ok {
			return like
		}
		return r
	}, norm.NFKD.String(name))
}

// Sounds is the same for names that look the same but for capitals and accents: people who say a name, or type it, make
// no difference between them. Signs of alphabets in which they are letters stay.
func Sounds(name string) string {
	return strings.Map(func(r rune) rune {
		if '\u0300' <= r && r <= '\u036f' {
			return -1
		}
		return unicode.ToLower(r)
	}, Looks(strings.ToLower(name)))
}

// look is what the partner's name looks like.
func (it *item) look() string {
	if name := it.Record.Name(); it.named != name {
		it.named, it.looks = name, Looks(name)
	}
	return it.looks
}

// Namesake is a partner, other than id and not gone, whose name people could take for
// that name: it is the same, or looks the same in another alphabet.
func (l *List) Namesake(name string, id workflow.PartnerID) (Partner, bool) {
	look := Looks(name)
	for _, other := range l.ids() {
		if it := l.partners[other]; other != id && !it.State.Gone() && it.look() == look {
			return it.Partner, true
		}
	}
	return Partner{}, false
}
