# ruff: noqa: RUF001 - letters of other languages
"""Binding words of languages other than English, and phrases of English that look binding and are not.

``FOREIGN`` is the documented table: by language, patterns of a prohibition, a duty, a limit, a decision, a goal, a
preference, a value, a commitment, and of words that revise. A sentence with two or more of the commonest English words is
not read with it.
"""

from __future__ import annotations

import functools
import re
from types import MappingProxyType

# By language: rule (never), rule (must), limit, decision, goal, preference, value, commitment, revising words.
FOREIGN_TEXT = MappingProxyType({
    "German": (
        r"\b(?:niemals|nie (?!wieder so|gedacht|gemocht|geglaubt)|auf keinen fall|unter keinen umst[äa]nden|d[üu]rfen? (?:\w+ ){0,6}?(?:nicht|kein\w*|nur)|darf(?:st)? (?:\w+ ){0,6}?(?:nicht|kein\w*|nur|nie)|verboten|nicht erlaubt|tabu|nicht ohne|(?:bitte |^)(?:keine?n? )\w+|^(?:bitte )?\w+(?:e|en)? (?:sie |bitte )?(?:\w+ ){0,5}?nicht(?: \w+){0,4}[!.]?$|nur mit (?:meiner|unserer|ausdr)|nur nach|^(?:bitte )?\w+(?:e|en)? (?:\w+ ){0,3}?(?:nichts|niemand\w*)\b|(?:nichts|niemand\w*) (?:\w+ ){1,6}?(?:bevor|ohne))",
        r"\b(?:muss|m[üu]ssen|immer (?:erst|nur|zuerst|die|den|das|mit|in|auf|vor|\w+en)|stets|unbedingt|ausschlie[ßs]+lich|grunds[äa]tzlich|verpflichtend|achte darauf|denk daran|frag(?:e|en)? (?:mich|sie|uns|vorher|immer))\b",
        r"\b(?:h[öo]chstens|maximal|mindestens|nicht mehr als|nicht l[äa]nger als|limit|obergrenze|budget|bis zu \d|unter \d)\b",
        r"\b(?:wir haben (?:uns )?(?:\w+ ){0,6}?(?:entschieden|beschlossen|geeinigt)|ich habe mich (?:\w+ ){0,6}?entschieden|entscheidung:|wir nehmen|wir nutzen|wir verwenden|wir bleiben bei|lass uns)\b",
        r"\b(?:das ziel|mein ziel|unser ziel|ziel ist|ich m[öo]chte bis)\b",
        r"\b(?:ich bevorzuge|mir ist lieber|lieber|ich mag|ich bin (?:vegetarier\w*|veganer\w*|allergisch)|ich esse kein\w*|ich hasse|nenn(?:e|t|en)? (?:mich|uns))\b",
        r"\b(?:mein|meine|unser|unsere|der|die|das) (?:[\w-]+ ){1,5}?(?:ist|sind|lautet|beginnt|wurde|hei[ßs]t)\b",
        r"\b(?:ich (?:werde|verspreche)|versprochen|zugesagt)\b",
        r"\b(?:doch|statt(?:dessen)?|ab (?:jetzt|sofort|heute)|nicht mehr|k[üu]nftig|korrektur|eigentlich|ge[äa]ndert|verschoben|sondern|neu\w*|von nun an|jetzt)\b",
    ),
    "French": (
        r"\b(?:(?:ne|n['\u2019])\s?\w+ (?:\w+ )?(?:jamais|pas|plus|que)|ne jamais|jamais|ne pas|interdit\w*|en aucun cas|surtout pas|pas de \w+ sans|^pas d(?:e |['\u2019])|il ne faut)\b",
        r"\b(?:doi(?:t|s|vent)|devez|toujours|il faut|obligatoire\w*|obligatoirement|uniquement|seulement|exclusivement|demande(?:z)?[- ]moi|veillez)\b",
        r"\b(?:au maximum|maximum|au plus|au moins|pas plus de|limite|plafond|budget|moins de \d)\b",
        r"\b(?:nous avons d[ée]cid[ée]|on a d[ée]cid[ée]|j['\u2019]ai d[ée]cid[ée]|d[ée]cision ?:|on (?:part|reste) sur|on utilise|on prend|nous prenons|nous utilisons|nous utiliserons|prenons)",
        r"\b(?:l['\u2019]objectif|mon objectif|notre objectif|le but|mon but)\b",
        r"\b(?:je pr[ée]f[èe]re|je suis (?:v[ée]g[ée]tari\w+|v[ée]gan\w*|allergique)|je n['\u2019]aime pas|j['\u2019]aime mieux|je ne mange pas|je d[ée]teste|plut[ôo]t)",
        r"\b(?:mon|ma|mes|notre|le|la|les) [\w'\u2019-]+(?: [\w'\u2019-]+){0,3} (?:est|sont|sera|commence)\b",
        r"\b(?:je (?:promets|m['\u2019]engage)|nous avons promis)",
        r"\b(?:finalement|plut[ôo]t|au lieu de|d[ée]sormais|dor[ée]navant|ne \w+ plus|[àa] partir de maintenant|en fait|correction|non,|chang\w+|report[ée]\w*|nouve\w+|maintenant)",
    ),
    "Spanish": (
        r"\b(?:nunca|jam[áa]s|prohibid[oa]s?|bajo ning[úu]n concepto|en ning[úu]n caso|no (?:se )?(?:debe|debes|deben|puede|puedes|pueden|uses|usar|borres|env[íi]es|compartas|hagas|toques|mandes|llames|pagues|des|olvides|\w+(?:es|as)\b)|sin mi (?:permiso|aprobaci[óo]n))",
        r"\b(?:debe[ns]?|tiene[ns]? que|hay que|siempre|obligatori[oa]|solo (?:con|si|en|usa|se)|s[óo]lo|solamente|[úu]nicamente|preg[úu]ntame|aseg[úu]rate)\b",
        r"\b(?:como m[áa]ximo|m[áa]ximo|como mucho|al menos|no m[áa]s de|l[íi]mite|tope|presupuesto|menos de \d)\b",
        r"\b(?:hemos decidido|decidimos|he decidido|decisi[óo]n:|vamos a usar|usaremos|nos quedamos con|vamos con)",
        r"\b(?:el objetivo|mi objetivo|nuestro objetivo|la meta|mi meta)\b",
        r"\b(?:prefiero|soy (?:vegetarian[oa]|vegan[oa]|al[ée]rgic[oa])|no me gusta\w*|odio|no como)\b",
        r"\b(?:mi|mis|nuestr[oa]s?|el|la|los|las) [\w-]+(?: [\w-]+){0,3} (?:es|son|ser[áa]|empieza|est[áa])\b",
        r"\b(?:prometo|me comprometo|prometimos)\b",
        r"\b(?:mejor|en vez de|en lugar de|a partir de ahora|ya no|de ahora en adelante|en realidad|correcci[óo]n|cambi\w+|sino|ahora|nuev[oa])\b",
    ),
    "Portuguese": (
        r"\b(?:nunca|jamais|proibid[oa]s?|em hip[óo]tese alguma|de jeito nenhum|n[ãa]o (?:pode|podem|deve|devem|use|usar|apague|envie|compartilhe|fa[çc]a|mexa|mande|ligue|pague|d[êe]|esque[çc]a)|sem (?:a )?minha (?:permiss[ãa]o|aprova[çc][ãa]o))",
        r"\b(?:deve[m]?|tem que|t[êe]m que|[ée] preciso|sempre|obrigat[óo]ri[oa]|somente|apenas|s[óo] (?:com|se|use)|pergunte|certifique-se)\b",
        r"\b(?:no m[áa]ximo|m[áa]ximo|pelo menos|n[ãa]o mais (?:de|que)|limite|teto|or[çc]amento|menos de \d)\b",
        r"\b(?:decidimos|eu decidi|resolvemos|decis[ãa]o:|vamos usar|vamos com|usaremos|ficamos com)",
        r"\b(?:o objetivo|meu objetivo|nosso objetivo|a meta|minha meta)\b",
        r"\b(?:prefiro|sou (?:vegetarian[oa]|vegan[oa]|al[ée]rgic[oa])|n[ãa]o gosto|odeio|n[ãa]o como)\b",
        r"\b(?:meus?|minhas?|noss[oa]s?|o|a|os|as) [\w-]+(?: [\w-]+){0,3} (?:[ée]|s[ãa]o|ser[áa]|come[çc]a|fica)\b",
        r"\b(?:prometo|me comprometo|prometemos)\b",
        r"\b(?:em vez de|na verdade|a partir de agora|de agora em diante|n[ãa]o mais|corre[çc][ãa]o|mud\w+|melhor|agora|nov[oa])\b",
    ),
    "Italian": (
        r"\b(?:mai|non (?:si )?(?:deve|devi|devono|pu[òo]|puoi|possono|usare|usate|cancellare|inviare|condividere|toccare|mandare|pagare|dare|\w+(?:are|ere|ire))|vietat[oa]|proibit[oa]|in nessun caso|senza (?:la mia|il mio))\b",
        r"\b(?:deve|devono|devi|bisogna|sempre|obbligatori[oa]|solo (?:con|se|dopo)|soltanto|esclusivamente|chiedimi|assicurati)\b",
        r"\b(?:al massimo|massimo|almeno|non pi[ùu] di|limite|tetto|budget|meno di \d)\b",
        r"\b(?:abbiamo deciso|ho deciso|decisione:|usiamo|useremo|andiamo con|restiamo con)\b",
        r"\b(?:l['\u2019]obiettivo|il mio obiettivo|il nostro obiettivo|lo scopo)\b",
        r"\b(?:preferisco|sono (?:vegetarian[oa]|vegan[oa]|allergic[oa])|non mi piac\w+|odio|non mangio)\b",
        r"\b(?:mio|mia|miei|nostr[oa]|il|la|lo|i|le) [\w'\u2019-]+(?: [\w'\u2019-]+){0,3} (?:[èe]|sono|sar[àa]|inizia)\b",
        r"\b(?:prometto|mi impegno|abbiamo promesso)\b",
        r"\b(?:invece|al posto di|d['\u2019]ora in poi|da ora in poi|non pi[ùu]|anzi|in realt[àa]|correzione|cambi\w+|spostat[oa]|bens[ìi]|adesso|ora|nuov[oa])\b",
    ),
    "Dutch": (
        r"\b(?:nooit|mag (?:\w+ ){0,6}?(?:niet|geen|nooit|alleen)|mogen (?:\w+ ){0,6}?(?:niet|geen|alleen)|verboden|in geen geval|niet zonder|^(?:gebruik|stuur|verwijder|deel|doe|bel|betaal|raak) (?:\w+ ){0,6}?(?:niet|geen))\b",
        r"\b(?:moet(?:en)?|altijd|verplicht|uitsluitend|alleen (?:met|als|na)|vraag (?:het )?(?:mij|me|eerst)|zorg (?:ervoor )?dat)\b",
        r"\b(?:maximaal|hooguit|minstens|minimaal|niet meer dan|limiet|budget|onder de \d)\b",
        r"\b(?:we hebben (?:\w+ ){0,6}?(?:besloten|gekozen|afgesproken)|ik heb (?:\w+ ){0,4}?besloten|besluit:|we gebruiken|we gaan voor|laten we)\b",
        r"\b(?:het doel|mijn doel|ons doel|doel is)\b",
        r"\b(?:ik heb liever|liever|ik ben (?:vegetari[ëe]r|veganist|allergisch)|ik hou niet van|ik eet geen)\b",
        r"\b(?:mijn|onze?|de|het) [\w-]+ (?:is|zijn|wordt|begint)\b",
        r"\b(?:ik beloof|beloofd|toegezegd)\b",
        r"\b(?:toch|in plaats van|vanaf nu|niet meer|voortaan|eigenlijk|correctie|verplaatst|gewijzigd|maar|nieuwe?|nu)\b",
    ),
    "Polish": (
        r"\b(?:nigdy|nie wolno|zabronion\w*|pod [żz]adnym pozorem|nie mo[żz]na|nie (?:u[żz]ywaj|usuwaj|wysy[łl]aj|udost[ęe]pniaj|r[óo]b|ruszaj|dzwo[ńn]|p[łl]a[ćc])|bez mojej zgody)\b",
        r"\b(?:musi(?:sz|my|cie)?|musz[ąa]|zawsze|nale[żz]y|trzeba|obowi[ąa]zkowo|tylko (?:z|za|po|je[śs]li)|wy[łl][ąa]cznie|pytaj mnie|upewnij si[ęe])\b",
        r"\b(?:maksymalnie|najwy[żz]ej|co najmniej|nie wi[ęe]cej ni[żz]|limit|bud[żz]et|poni[żz]ej \d)\b",
        r"\b(?:zdecydowali[śs]my|postanowili[śs]my|zdecydowa[łl][ae]m|decyzja:|u[żz]ywamy|b[ęe]dziemy u[żz]ywa[ćc]|zosta[ńn]my przy)\b",
        r"\b(?:celem|m[óo]j cel|nasz cel|cel to)\b",
        r"\b(?:wol[ęe]|jestem (?:wegetariani\w+|wegani\w+|uczulon\w+)|nie lubi[ęe]|nie jem|nienawidz[ęe])\b",
        r"\b(?:m[óo]j|moja|moje|nasz\w*|termin|spotkanie|adres|numer) (?:[\w-]+ ){0,3}(?:to|jest|wynosi|b[ęe]dzie)\b",
        r"\b(?:obiecuj[ęe]|zobowi[ąa]zuj[ęe]|obiecali[śs]my)\b",
        r"\b(?:jednak|zamiast|od teraz|ju[żz] nie|w[łl]a[śs]ciwie|korekta|zmie[ńn]\w*|przeniesion\w*|lecz|now[yae]|teraz)\b",
    ),
    "Russian": (
        r"(?:никогда|нельзя|запрещ\w+|ни в коем случае|ни при каких|не (?:используй|удаляй|отправляй|делай|трогай|звони|плати|должн\w+|надо|нужно|смей|публикуй|пиши)\w*|без моего)",
        r"(?:долж(?:ен|на|но|ны)|всегда|обязательно|обязан\w*|только (?:с|после|если|через)|исключительно|спрашивай|спроси|следует|необходимо|убедись)",
        r"(?:максимум|не более|не больше|не менее|минимум|лимит|бюджет|до \d)",
        r"(?:мы решили|я решил\w?|решено|решение:|используем|будем использовать|остановились на|давай(?:те)? (?:использ|возьм|остан))",
        r"(?:цель|моя цель|наша цель|задача в том)",
        r"(?:предпочитаю|я (?:вегетариан\w+|веган\w*)|у меня аллергия|не люблю|не ем|ненавижу|мне больше нравится)",
        r"(?:мой|моя|моё|мое|мои|наш\w*|срок|встреча|адрес|номер|бюджет) (?:[\w-]+ ){0,3}(?:\u2014|-|это|теперь|будет|перенес\w+|\d)",
        r"(?:обещаю|обязуюсь|мы обещали)",
        r"(?:вместо|теперь|отныне|больше не|на самом деле|исправл\w+|передума\w+|перенес\w+|измени\w+|лучше|нет,|а не|нов\w+)",
    ),
    "Chinese": (
        r"(?:绝不|绝对不|决不|不要|别(?!的|人|墅|说)|不得|禁止|严禁|切勿|请勿|不许|不允许|不能|不可以|未经.{0,8}(?:同意|批准|许可))",
        r"(?:必须|务必|一定要|应当|总是|始终|只能|只有|仅限|永远|要先|先问我|都要|只用)",
        r"(?:最多|不超过|至少|上限|预算|以内|不少于|限制)",
        r"(?:我们决定|决定了|我决定|决定[:：用采]|就用|采用|我们用|选定)",
        r"(?:目标是|我的目标|我们的目标|目的是)",
        r"(?:我更喜欢|更喜欢|我不喜欢|我吃素|素食|过敏|我不吃|偏好|我喜欢用)",
        r"(?:我的|我们的|截止日期|会议|地址|电话|航班|预算).{0,12}(?:是|为|改到|在)",
        r"(?:我保证|我承诺|我会在|我答应)",
        r"(?:改成|改为|改到|不再|从现在起|从今以后|而不是|其实|更正|换成|取消之前|现在|以后)",
    ),
    "Japanese": (
        r"(?:決して|絶対に.{0,30}(?:ない|ません|な(?:いで|ければ)|禁止)|ないでください|しないで|てはいけ|ては(?:なら|ダメ|だめ)|禁止|厳禁|てはいけません|許可なく|承認なし)",
        r"(?:必ず|なければなら|なければいけ|ねばなら|べき|常に|いつも.{0,20}(?:して|てください)|のみ|だけ(?:に|で|を)|してください)",
        r"(?:最大|以内|以下|まで(?:です|に)|以上|上限|予算|少なくとも|超えない)",
        r"(?:に決め|決定|にしましょう|ことにし|を使います|を採用|でいきましょう)",
        r"(?:目標は|目的は|ゴールは)",
        r"(?:の方が好き|のほうが好き|が好き|が嫌い|が苦手|アレルギー|ベジタリアン|好みは)",
        r"(?:私の|うちの|締め切り|締切|会議|住所|電話|予算|便).{0,12}は",
        r"(?:約束します|お約束|必ずやります)",
        r"(?:やっぱり|ではなく|じゃなくて|に変更|これからは|今後|もう.{0,12}ない|訂正|代わりに|新しい|今は)",
    ),
    "Korean": (
        r"(?:절대|하지 ?마|지 ?마세요|지 ?말|금지|안 ?됩니다|안 ?돼|승인 ?없이|허락 ?없이|해서는 안)",
        r"(?:반드시|꼭|해야 ?(?:합니다|해|한다|돼|됩니다)|항상|언제나|오직|에만|만 사용|먼저 물어)",
        r"(?:최대|이내|이하|이상|한도|예산|적어도|넘지)",
        r"(?:결정했|하기로 했|로 결정|로 갑시다|로 하자|사용하기로|쓰기로)",
        r"(?:목표는|목적은|제 목표|우리 목표)",
        r"(?:선호|더 좋아|싫어|알레르기|채식|안 먹|못 먹)",
        r"(?:제|저의|내|우리) ?\S{1,10}(?:은|는) .{0,20}(?:입니다|이에요|예요|이야|다\.?$)",
        r"(?:약속|하겠습니다|할게요)",
        r"(?:아니라|대신|이제부터|앞으로는|더 ?이상|사실은|정정|변경|바꿔|바뀌|새로운|이제는?)",
    ),
    "Arabic": (
        r"(?:أبد[اًا]+|لا (?:ت\w+|يجوز|يمكن|يُسمح|يسمح)|ممنوع|يُمنع|يمنع|يحظر|بدون موافقت|دون إذن|إياك)",
        r"(?:يجب|دائم[اًا]+|لا بد|فقط|حصر[اًا]+|ينبغي|اسألني|تأكد)",
        r"(?:كحد أقصى|الحد الأقصى|لا يزيد|على الأقل|الميزانية|ميزانيت)",
        r"(?:قررنا|قررت|القرار|سنستخدم|اتفقنا|لنستخدم)",
        r"(?:الهدف|هدفي|هدفنا)",
        r"(?:أفضل|أفضّل|لا أحب|أكره|نباتي|حساسية|لا آكل)",
        r"(?:موعد|عنوان|رقم|ميزانيت|اجتماع|رحلت)\S* ?.{0,20}(?:هو|هي|في|إلى|\d)",
        r"(?:أعدك|وعد|أتعهد)",
        r"(?:بدل[اًا]* من|من الآن|لم يعد|في الواقع|تصحيح|تغيير|غير[تن]|الجديد|الآن|بل)",
    ),
    "Hindi": (
        r"(?:कभी (?:भी )?(?:\S+ ){0,8}?(?:नहीं|मत|न )|मत (?:कर|भेज|हटा|दे|बता)|\S+ मत\b|नहीं कर(?:ना|ें)|मना है|वर्जित|बिना (?:मेरी|पूछे|अनुमति)|न करें)",
        r"(?:हमेशा|ज़रूर|जरूर|चाहिए|अनिवार्य|केवल|सिर्फ|सिर्फ़|पहले मुझसे)",
        r"(?:अधिकतम|ज़्यादा से ज़्यादा|से ज्यादा नहीं|से अधिक नहीं|कम से कम|सीमा|बजट)",
        r"(?:हमने (?:\S+ ){0,6}?(?:तय|फैसला|निर्णय)|मैंने (?:\S+ ){0,6}?(?:तय|फैसला)|तय हुआ|निर्णय:)",
        r"(?:लक्ष्य|उद्देश्य)",
        r"(?:मुझे (?:\S+ ){0,4}?(?:पसंद|एलर्जी)|शाकाहारी|मैं (?:\S+ ){0,3}?नहीं खा)",
        r"(?:मेरा|मेरी|मेरे|हमारा|हमारी|बजट|मीटिंग|बैठक|पता) (?:\S+ ){0,6}?(?:है|हैं|होगी|होगा)",
        r"(?:वादा|वचन)",
        r"(?:के बजाय|की जगह|अब से|अब नहीं|असल में|सुधार|बदल\S*|नया|नई|अब)",
    ),
    "Turkish": (
        r"\b(?:asla|sak[ıi]n|yasak\w*|hi[çc]bir (?:zaman|ko[şs]ulda|[şs]ekilde)|kesinlikle (?:\w+ ){0,6}?\w+m[ae]\w*|onay[ıi]m olmadan|izin(?:siz)?(?: almadan)?|\w+(?:ma|me)y[ıi]n(?:[ıi]z)?|(?:silme|g[öo]nderme|payla[şs]ma|kullanma|arama|yapma|[öo]deme))\b",
        r"\b(?:mutlaka|her zaman|daima|zorunlu\w*|gerek(?:ir|iyor|li)|\w+m[ae]l[ıi](?:s[ıi]n|y[ıi]z|d[ıi]r)?|sadece|yaln[ıi]zca|[öo]nce bana sor)\b",
        r"\b(?:en fazla|en [çc]ok|azami|en az|a[şs]ma(?:s[ıi]n|y[ıi]n)|limit|s[ıi]n[ıi]r\w*|b[üu]t[çc]e\w*)\b",
        r"\b(?:karar (?:verdik|verdim|ald[ıi]k)|karar:|kullanaca[ğg][ıi]z|kullan[ıi]yoruz|ile devam)\b",
        r"\b(?:hedef(?:im|imiz)?|ama[çc](?:[ıi]m|[ıi]m[ıi]z)?)\b",
        r"\b(?:tercih eder\w*|tercih ediyor\w*|sevmiyorum|sevmem|vejetaryen\w*|vegan\w*|alerji\w*|yemem|yemiyorum)\b",
        r"\b(?:benim |bizim )?\w+[ıiuü](?:m|m[ıi]z) (?:art[ıi]k )?[\w\d].{0,40}",
        r"\b(?:s[öo]z veriyorum|taahh[üu]t)\b",
        r"\b(?:yerine|art[ıi]k|bundan sonra|asl[ıi]nda|d[üu]zeltme|de[ğg]i[şs]\w*|ta[şs][ıi]nd[ıi]|[şs]imdi|yeni)\b",
    ),
})  # fmt: skip

FOREIGN_KINDS = ("rule", "rule", "limit", "decision", "goal", "preference", "value", "commitment")


@functools.cache
def foreign_patterns(language: str) -> tuple[re.Pattern[str], ...]:
    """The patterns of a language: of each of ``FOREIGN_KINDS``, and of a change."""
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in FOREIGN_TEXT[language])


MARKERS_TEXT = MappingProxyType(
    {
        "German": "der die das und ist nicht ein eine ich wir du sie mit für auf den dem bitte mein meine im von zu nie immer nur kein keine ohne nach als pro maximal höchstens mindestens",
        "French": "suis aux du cette notre votre nos mes il elle le la les et est pas un une je nous tu vous avec pour sur des du mon ma ce que qui dans ne au jamais toujours sans",
        "Spanish": "el la los las y es no un una yo nosotros con para por en de del mi que se lo al nunca siempre sin usa",
        "Portuguese": "o os as e é não um uma eu nós com para por em de do da meu minha que se no na ao nunca sempre sem",
        "Italian": "il la lo gli e è non un una io noi con per di del della mio mia che si al in mai sempre senza",
        "Dutch": "de het een en is niet ik wij we je met voor op van mijn in te dat nooit altijd geen zonder",
        "Polish": "i w na nie jest to z do się mój moja że po od za nigdy zawsze bez dla",
        "Turkish": "ve bir bu için ile değil de da ben biz çok ama mi mı en asla her olmadan",
    }
)
"""The commonest words of the languages with Latin letters: two of them, or one with a letter English lacks, name one."""

MARKERS = MappingProxyType({language: frozenset(words.split()) for language, words in MARKERS_TEXT.items()})
SCRIPTS = (
    ("Russian", re.compile(r"[\u0400-\u04ff]")),
    ("Japanese", re.compile(r"[\u3040-\u30ff]")),
    ("Korean", re.compile(r"[\uac00-\ud7a3]")),
    ("Chinese", re.compile(r"[\u4e00-\u9fff]")),
    ("Arabic", re.compile(r"[\u0600-\u06ff]")),
    ("Hindi", re.compile(r"[\u0900-\u097f]")),
)
ENGLISH = frozenset(
    "the is are and to of you we my it this that with for from not be have has do don't i'm will i your our a on at by if never always must only please all every use let's us them they he she was were can can't should no any before after without until than in so but as an what when who how one two three more most least me up out new now week day get got go use using it's that's there any no only just not".split()  # noqa: SIM905
)
_ABBREVIATIONS = re.compile(r"\b(?:e\.g|i\.e|a\.m|p\.m)\.", re.IGNORECASE)
_STRONG = frozenset(
    "nie niemals immer bitte keine kein jamais toujours nunca siempre jamás sempre nooit altijd nigdy zawsze asla doch".split()  # noqa: SIM905
)
"""Words that name their language alone."""

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")


def guess_language(text: str) -> str:
    """Name the language of a sentence, ``English`` where nothing else is likely.

    >>> guess_language("Bitte nie am Freitag deployen."), guess_language("Never deploy on Fridays.")
    ('German', 'English')
    """
    for language, script in SCRIPTS:
        if len(script.findall(text[:200])) >= 2:
            return language
    words = [word.lower() for word in _WORD.findall(_ABBREVIATIONS.sub(" ", text[:300]))]
    english = sum(word in ENGLISH for word in words)
    best, most = "English", max(1, english)
    for language, markers in MARKERS.items():
        count = sum((word in markers) * (1 + (word in _STRONG)) for word in words)
        count += any(not word.isascii() for word in words) and count > 0
        if count > most:
            best, most = language, count
    return best


def has_english(text: str) -> bool:
    """True for a text with one of the commonest English words."""
    return any(word.lower() in ENGLISH for word in _WORD.findall(text))


IDIOMS = re.compile(
    r"\b(?:(?:please )?(?:don't|do not|dont) (?:you )?(?:worry|stress|sweat|panic|hesitate|mention it|give up|get me wrong|be (?:so |too )?(?:hard|shy|afraid|silly|sad|sorry|a stranger|discouraged|scared)|"
    r"beat yourself|know|think|even|remember|mind|believe|lose (?:hope|heart)|let (?:it|that|them|this|anyone|anything|fear|\w+ \w+) (?:get|stop|bring|discourage|hold|ruin|define)|let the \w+ \w+ you|you (?:think|just|love|agree)|forget to (?:take care|have fun|enjoy|breathe|smile|treat|rest|relax)|rush yourself|ask me why|get me started|tell me|look back|stop believing)"
    r"|never (?:mind|know|knew|say never|give up|stop (?:dreaming|learning|believing|amaz\w+|exploring)|too late|gets? old|ever(?:land)?$|cease\w*|fail\w* to|hurts?|looked back|look back|thought|felt|had|been|really|expected|realized|realised|imagined|seen|heard|tried|liked|got|lose hope|underestimate|forget (?:that|how|the|where|those))"
    r"|never(?:-|\s)ending|never too (?:late|early|old)|always (?:be (?:there|here|grateful|thankful|my|a)|been|wanted|loved|there|a (?:pleasure|joy|good)|nice|fun|good|great|wanted|remember(?:ed)?|room|welcome|believe in|thought|had|felt|dreamed|enjoyed|liked)"
    r"|must(?:-|\s)(?:see|have|try|read|visit|do|watch)s?\b|must (?:say|admit|confess|have been|have \w+ed|be (?:so |really |very |such |quite |pretty |a |an |hard|nice|tough|exciting|great|fun|tired|amazing|wonderful|something|difficult|proud|happy|lovely|awesome|incredible|kidding|joking|\w+ing\b|nervous|excited|thrilled|stressful|rewarding|beautiful))"
    r"|can't (?:wait|believe|imagine|help|complain|thank|get enough|stop|say enough|remember|tell you|seem|recommend|afford to miss|go wrong|beat)|no (?:worries|problem|way|doubt|wonder|idea|matter|one knows|big deal|pressure|rush|offen[cs]e|need to (?:thank|worry|apologi[sz]e)|thanks?|thank you|clue|pun|joke|kidding|luck|end|time to lose|pain,? no gain)"
    r"|only (?:if|when) you (?:want|like|feel)|if only|not only|always (?:at|in|on) my (?:side|mind|heart)|should be (?:fun|good|great|fine|nice|interesting|exciting|able|proud)|let's (?:see|face it|say|be honest|hope|go!|do (?:it|this|that)|catch up|chat|talk|hang|get (?:started|going|into it)|keep (?:in touch|going|it up|at it)|start|continue|begin|move on|dive|have a look|take a look|try|try again|check)\b"
    r"|needless to say|at least (?:it|he|she|they|we|you|i|for now|that)\b|as (?:always|ever|usual)|(?:than|like) (?:never|ever) (?:before)?|once in a lifetime|keep (?:it up|up the|going|me (?:posted|updated|in the loop)|in touch|pushing|shining|smiling|rocking|being|doing|at it|fighting|believing|dreaming|following|moving|on|exploring|spreading)|stay (?:strong|positive|safe|tuned|in touch|true|motivated|awesome|focused))\b",
    re.IGNORECASE,
)  # fmt: skip
"""Phrases of small talk with a binding word in them, which bind nobody."""
