-- Marten's counter, written from what its documentation says it does; not its text.
-- A row holds the last hi handed out. -1 means that another process was quicker.
CREATE TABLE mt_hilo (
    entity_name varchar PRIMARY KEY,
    hi_value bigint DEFAULT 0
);

CREATE FUNCTION mt_get_next_hi(entity varchar) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    last_hi bigint;
BEGIN
    SELECT hi_value INTO last_hi FROM mt_hilo WHERE entity_name = entity;
    IF NOT FOUND THEN
        INSERT INTO mt_hilo VALUES (entity, 0);
        RETURN 0;
    END IF;
    UPDATE mt_hilo SET hi_value = last_hi + 1
        WHERE entity_name = entity AND hi_value = last_hi;
    IF NOT FOUND THEN
        RETURN -1;
    END IF;
    RETURN last_hi + 1;
END $$;
