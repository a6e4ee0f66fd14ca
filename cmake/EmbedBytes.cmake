# Puts the bytes of IN where TEMPLATE has them, and writes OUT.
file(READ ${IN} bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," WEIR_BYTES "${bytes}")
configure_file(${TEMPLATE} ${OUT} @ONLY)
