"""The words of word guessing: common English words of five letters, collected for this game."""

_TEXT = """
about above after again agree album alive allow along anger angle apply arena argue aside avoid award beach
began begin below bench birth blade blame blank blind block blood boost bound brain bread break brick brief
bring broad brush build burst cabin cable carry cause chain chair charm chart chase check cheek chest child
choir claim clean clear climb close cloth cloud coast count court craft crane crash crime cross crowd curve
cycle daily delay depth diary doubt dozen draft dream dress drink earth eight elbow enemy enjoy enter error
event every exist extra faith fault favor feast fever field fight first flame flash flesh float floor fluid
focus force fresh front fruit ghost giant glass glory glove grace grain grand grape great green greet guard
guess guest habit happy heart hello honey horse house human humor image index inner jelly jewel joint juice
knife knock large laser later layer learn lemon light limit local loose lucky lunch major maple march maybe
metal might model money month motor mount mouse movie music nasty never night noble north novel nurse offer
olive onion order other ought owner paint panel party peace pearl photo piano piece pitch place plain plant
plate point power press price print prize proof pupil queen quick quite radio raise reach react ready robot
rough round royal salad scale score sense serve shade shake shape sharp sheep sheet shine shirt shock short
shout sight skirt sleep slice small smart smile snake solid solve sound south space speak spend spice sport
staff stage stamp stand start steam steel stick store storm story straw sugar sweet sword table taste thank
theme thick think three throw tiger tired toast tooth topic total tower track trade treat trend trial truck
trust truth uncle under union upper urban usual video visit voice watch water weigh where white whole world
worry worth wound write wrong young youth
"""

WORDS = tuple(_TEXT.split())
"""In alphabetical order; lower case, none twice."""
